// SPDX-License-Identifier: GPL-2.0

#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <net/netdev_lock.h>

/*
 * A NAPI that is not listed counts as scheduled, so that its interrupt does
 * nothing. Says, as net_shim_napi_unlist() does, since when nobody looks at it.
 */
unsigned long net_shim_napi_init(struct net_device *dev, struct napi_struct *napi, int index,
				 int irq)
{
	napi->dev = dev;
	napi->irq = -1;
	set_bit(NAPI_STATE_SCHED, &napi->state);
	irq_set_affinity(irq, &dev->napi_config[index].affinity_mask);
	return get_completed_synchronize_rcu();
}

/*
 * Waits until nobody looks at a NAPI that is not listed; its last poll may have
 * armed the timer meanwhile. There is none before it was listed once.
 */
static void net_shim_napi_wait(struct napi_struct *napi, unsigned long since)
{
	cond_synchronize_rcu(since);
	if (napi->poll)
		hrtimer_cancel(&napi->timer);
}

/* What was set last, also if it waits for the next interrupt, as irq_affinity_notify() says it. */
static const struct cpumask *net_shim_irq_affinity(int irq)
{
	struct irq_data *data = irq_get_irq_data(irq);

	if (!data)
		return NULL;
#ifdef CONFIG_GENERIC_PENDING_IRQ
	if (irqd_is_setaffinity_pending(data))
		return irq_data_to_desc(data)->pending_mask;
#endif
	return irq_data_get_affinity_mask(data);
}

/* Says which NAPI serves the queues of that number: @napi, or none. */
static void net_shim_napi_link(struct net_device *dev, struct napi_struct *napi, int index)
{
	if (index < dev->num_rx_queues)
		netif_queue_set_napi(dev, index, NETDEV_QUEUE_TYPE_RX, napi);
	if (index < dev->num_tx_queues)
		netif_queue_set_napi(dev, index, NETDEV_QUEUE_TYPE_TX, napi);
}

void net_shim_napi_list(struct net_device *dev, struct napi_struct *napi,
			int (*poll)(struct napi_struct *, int), int index, int irq,
			unsigned long since)
{
	const struct cpumask *affinity = net_shim_irq_affinity(irq);

	net_shim_napi_wait(napi, since);
	/* The core follows a change of it only while the NAPI is listed. */
	if (affinity)
		cpumask_copy(&dev->napi_config[index].affinity_mask, affinity);
	netif_napi_add_config_locked(dev, napi, poll, index);
	netif_napi_set_irq_locked(napi, irq);
	net_shim_napi_link(dev, napi, index);
}

/*
 * As netif_napi_del_locked(), but leaves it to who lists or frees the NAPI to
 * wait for readers of the list: in the time between, those of several NAPIs.
 */
unsigned long net_shim_napi_unlist(struct napi_struct *napi, int index)
{
	net_shim_napi_link(napi->dev, NULL, index);
	netif_napi_set_irq_locked(napi, -1);
	__netif_napi_del_locked(napi);
	/* The end of a poll may have armed it again after napi_disable(). */
	hrtimer_cancel(&napi->timer);
	return get_state_synchronize_rcu();
}

void net_shim_napi_del(struct napi_struct *napi, int index)
{
	if (test_bit(NAPI_STATE_LISTED, &napi->state)) {
		netdev_lock(napi->dev);
		net_shim_napi_unlist(napi, index);
		netdev_unlock(napi->dev);
	}
	synchronize_net();
	net_shim_napi_wait(napi, get_completed_synchronize_rcu());
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
