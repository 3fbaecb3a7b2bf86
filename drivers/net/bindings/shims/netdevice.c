// SPDX-License-Identifier: GPL-2.0

#include <linux/etherdevice.h>
#include <linux/netdevice.h>

void *net_shim_netdev_priv(const struct net_device *dev)
{
	BUILD_BUG_ON(NET_SHIM_SKB_PAD != NET_SKB_PAD);

	return netdev_priv(dev);
}

void net_shim_set_netdev_dev(struct net_device *dev, struct device *parent)
{
	SET_NETDEV_DEV(dev, parent);
}

void net_shim_set_priv_flags(struct net_device *dev, bool netmem_tx)
{
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE | IFF_UNICAST_FLT;
	dev->netmem_tx = netmem_tx ? NETMEM_TX_DMA : NETMEM_TX_NONE;
}

void net_shim_count_tx_dropped(struct net_device *dev)
{
	dev_core_stats_tx_dropped_inc(dev);
}

bool net_shim_netif_running(const struct net_device *dev)
{
	return netif_running(dev);
}

void net_shim_eth_hw_addr_set(struct net_device *dev, const u8 *addr)
{
	eth_hw_addr_set(dev, addr);
}

void net_shim_eth_hw_addr_random(struct net_device *dev)
{
	eth_hw_addr_random(dev);
}

bool net_shim_is_valid_ether_addr(const u8 *addr)
{
	return is_valid_ether_addr(addr);
}

void net_shim_set_mtu(struct net_device *dev, unsigned int mtu)
{
	WRITE_ONCE(dev->mtu, mtu);
}

u64 net_shim_features(const struct net_device *dev)
{
	return READ_ONCE(dev->features);
}

void net_shim_log_link(const struct net_device *dev, bool up)
{
	netdev_info(dev, "link is %s\n", up ? "up" : "down");
}

/*
 * The core would look at the device later, for which it must be there: one that
 * is being unregistered is not waited for any more.
 */
void net_shim_set_carrier(struct net_device *dev, bool up)
{
	guard(rcu)();
	if (READ_ONCE(dev->reg_state) > NETREG_REGISTERED)
		return;
	if (up)
		netif_carrier_on(dev);
	else
		netif_carrier_off(dev);
}

bool net_shim_carrier_ok(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
}
