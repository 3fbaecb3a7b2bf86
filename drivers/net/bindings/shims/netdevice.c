// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>

/* Unregistering frees them, after all who read the state before it changed are done. */
static bool has_tstats(const struct net_device *dev)
{
	return dev->pcpu_stat_type == NETDEV_PCPU_STAT_TSTATS &&
	       READ_ONCE(dev->reg_state) == NETREG_REGISTERED;
}

void net_shim_count_rx(struct net_device *dev, unsigned int len)
{
	BUILD_BUG_ON(NET_SHIM_SKB_PAD != NET_SKB_PAD);

	guard(rcu)();
	if (has_tstats(dev))
		dev_sw_netstats_rx_add(dev, len);
}

void net_shim_count_tx(struct net_device *dev, unsigned int len)
{
	guard(rcu)();
	if (has_tstats(dev))
		dev_sw_netstats_tx_add(dev, 1, len);
}

void net_shim_work_sched(struct net_device *dev, unsigned long events)
{
	if (!irqs_disabled() && !in_hardirq())
		netdev_work_sched(dev, events);
}
