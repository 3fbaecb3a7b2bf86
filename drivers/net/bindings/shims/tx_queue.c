// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <net/netdev_queues.h>
#include <net/sch_generic.h>

void net_shim_tx_lock_bh(struct netdev_queue *txq)
{
	__netif_tx_lock_bh(txq);
}

void net_shim_tx_unlock_bh(struct netdev_queue *txq)
{
	__netif_tx_unlock_bh(txq);
}

void net_shim_tx_stop_queue(struct netdev_queue *txq)
{
	netif_tx_stop_queue(txq);
}

bool net_shim_tx_sent(struct netdev_queue *txq, unsigned int bytes, bool xmit_more)
{
	return __netdev_tx_sent_queue(txq, bytes, xmit_more);
}

/* dql_completed() would BUG on more than was sent. */
void net_shim_tx_completed(struct netdev_queue *txq, unsigned int pkts, unsigned int bytes)
{
#ifdef CONFIG_BQL
	unsigned int sent = READ_ONCE(txq->dql.num_queued) - txq->dql.num_completed;

	if (WARN_ON_ONCE(bytes > sent))
		bytes = sent;
#endif
	netdev_txq_completed_mb(txq, pkts, bytes);
}

bool net_shim_xmit_more(void)
{
	return netdev_xmit_more();
}

/* Nobody may enqueue meanwhile. */
bool net_shim_tx_drained(struct netdev_queue *txq)
{
	struct Qdisc *qdisc;
	bool drained;

	rcu_read_lock();
	qdisc = rcu_dereference(txq->qdisc);
	if (qdisc_is_running(qdisc)) {
		drained = false;
	} else {
		/* Whoever ran it has put back what could not be sent. */
		smp_rmb();
		drained = qdisc_is_empty(qdisc);
	}
	rcu_read_unlock();
	return drained;
}
