// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <net/netdev_lock.h>

/*
 * A NAPI that is not listed counts as scheduled, so that its interrupt does
 * nothing. Says, as net_shim_napi_unlist() does, since when nobody looks at it.
 */
unsigned long net_shim_napi_init(struct net_device *dev, struct napi_struct *napi)
{
	napi->dev = dev;
	napi->irq = -1;
	set_bit(NAPI_STATE_SCHED, &napi->state);
	return get_completed_synchronize_rcu();
}

void net_shim_napi_list(struct net_device *dev, struct napi_struct *napi,
			int (*poll)(struct napi_struct *, int), int index, int irq,
			unsigned long since)
{
	cond_synchronize_rcu(since);
	netif_napi_add_config_locked(dev, napi, poll, index);
	netif_napi_set_irq_locked(napi, irq);
}

/*
 * As netif_napi_del_locked(), but leaves it to who lists or frees the NAPI to
 * wait for readers of the list: in the time between, those of several NAPIs.
 */
unsigned long net_shim_napi_unlist(struct napi_struct *napi)
{
	netif_napi_set_irq_locked(napi, -1);
	__netif_napi_del_locked(napi);
	/* The end of a poll may have armed it again after napi_disable(). */
	hrtimer_cancel(&napi->timer);
	return get_state_synchronize_rcu();
}

void net_shim_napi_del(struct napi_struct *napi)
{
	if (test_bit(NAPI_STATE_LISTED, &napi->state)) {
		netdev_lock(napi->dev);
		net_shim_napi_unlist(napi);
		netdev_unlock(napi->dev);
	}
	synchronize_net();
}

void net_shim_napi_schedule(struct napi_struct *napi)
{
	napi_schedule(napi);
}

/*
 * The core's own NAPI timer: its callback schedules the NAPI, so nothing of a
 * module is ever called late.
 */
void net_shim_napi_retry_after(struct napi_struct *napi, u64 ns)
{
	if (!hrtimer_is_queued(&napi->timer))
		hrtimer_start(&napi->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED);
}
