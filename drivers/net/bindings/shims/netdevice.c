// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>

void net_shim_count_rx(struct net_device *dev, unsigned int len)
{
	BUILD_BUG_ON(NET_SHIM_SKB_PAD != NET_SKB_PAD);

	if (dev->pcpu_stat_type == NETDEV_PCPU_STAT_TSTATS)
		dev_sw_netstats_rx_add(dev, len);
}

void net_shim_count_tx(struct net_device *dev, unsigned int len)
{
	if (dev->pcpu_stat_type == NETDEV_PCPU_STAT_TSTATS)
		dev_sw_netstats_tx_add(dev, 1, len);
}
