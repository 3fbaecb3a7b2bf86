// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <net/gro.h>

/* A NAPI beyond those that the device has settings for keeps none. */
void net_shim_napi_add(struct net_device *dev, struct napi_struct *napi,
		       int (*poll)(struct napi_struct *, int), unsigned int index)
{
	if (index < dev->num_napi_configs)
		netif_napi_add_config_locked(dev, napi, poll, index);
	else
		netif_napi_add_locked(dev, napi, poll);
}

void net_shim_napi_gro_flush(struct napi_struct *napi)
{
	napi_gro_flush(napi, false);
}
