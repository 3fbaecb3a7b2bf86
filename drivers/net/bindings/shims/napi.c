// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <net/netdev_lock.h>

void net_shim_netdev_lock(struct net_device *dev)
{
	netdev_lock(dev);
}

void net_shim_netdev_unlock(struct net_device *dev)
{
	netdev_unlock(dev);
}

/* A NAPI beyond those that the device has settings for keeps none. */
void net_shim_napi_add(struct net_device *dev, struct napi_struct *napi,
		       int (*poll)(struct napi_struct *, int), unsigned int index)
{
	if (index < dev->num_napi_configs)
		netif_napi_add_config_locked(dev, napi, poll, index);
	else
		netif_napi_add_locked(dev, napi, poll);
}

void net_shim_napi_del(struct napi_struct *napi)
{
	netif_napi_del_locked(napi);
}

void net_shim_napi_schedule(struct napi_struct *napi)
{
	napi_schedule(napi);
}
