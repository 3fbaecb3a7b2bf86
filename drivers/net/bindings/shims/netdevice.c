// SPDX-License-Identifier: GPL-2.0

#include <linux/etherdevice.h>
#include <linux/interrupt.h>
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

void net_shim_set_flags(struct net_device *dev, bool netmem_tx, bool unicast_filter,
			bool live_address_change, bool software_stats)
{
	dev->netmem_tx = netmem_tx ? NETMEM_TX_DMA : NETMEM_TX_NONE;
	if (software_stats)
		dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	if (unicast_filter)
		dev->priv_flags |= IFF_UNICAST_FLT;
	if (live_address_change)
		dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
}

void net_shim_count_rx(struct net_device *dev, unsigned int len)
{
	if (dev->pcpu_stat_type == NETDEV_PCPU_STAT_TSTATS)
		dev_sw_netstats_rx_add(dev, len);
}

void net_shim_count_tx(struct net_device *dev, unsigned int len)
{
	if (dev->pcpu_stat_type == NETDEV_PCPU_STAT_TSTATS)
		dev_sw_netstats_tx_add(dev, 1, len);
}

/* Users may send it elsewhere. */
void net_shim_spread_irq(const struct net_device *dev, unsigned int irq, unsigned int index)
{
	int node = dev->dev.parent ? dev_to_node(dev->dev.parent) : NUMA_NO_NODE;

	irq_set_affinity(irq, cpumask_of(cpumask_local_spread(index, node)));
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
