// SPDX-License-Identifier: GPL-2.0

#include <linux/dma-mapping.h>
#include <linux/skbuff.h>
#include <net/page_pool/helpers.h>

static inline bool lies_in_netmem(netmem_ref netmem, u32 offset, u32 size)
{
	return (u64)offset + size <= PAGE_SIZE << netmem_get_pp(netmem)->p.order;
}

/*
 * A pool that is gone for its owner has unmapped the memory that is still out,
 * and its device may be gone, too. page_pool_destroy() waits for RCU readers
 * before it unmaps: this is called in a NAPI, which is one, or with the RCU read
 * lock held.
 */
static __always_inline void sync_netmem_for_cpu(netmem_ref netmem, u32 offset, u32 size)
{
	const struct page_pool *pool = netmem_get_pp(netmem);

	if (likely(pool->dma_sync))
		page_pool_dma_sync_netmem_for_cpu(pool, netmem, offset, size);
}

void net_shim_pp_put_fragments(struct page_pool *pool, netmem_ref netmem, long count)
{
	if (page_pool_unref_netmem(netmem, count) == 0)
		page_pool_put_unrefed_netmem(pool, netmem, -1, false);
}

/*
 * Hard interrupts must not enter a page pool, nor may who has turned them off
 * (netpoll): the core frees an skb around the memory later. Without memory for
 * one, what cannot be recycled is lost.
 */
static void put_later(netmem_ref netmem)
{
	struct sk_buff *skb = alloc_skb(0, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb) {
		pr_warn_ratelimited("net: no memory to recycle a page in hard interrupt\n");
		return;
	}
	skb_add_rx_frag_netmem(skb, 0, netmem, 0, 0, 0);
	skb_mark_for_recycle(skb);
	dev_kfree_skb_irq(skb);
}

void net_shim_pp_put(netmem_ref netmem)
{
	if (unlikely(in_hardirq() || irqs_disabled()))
		put_later(netmem);
	else
		page_pool_put_full_netmem(netmem_get_pp(netmem), netmem, false);
}

/* Nothing if it does not lie in @netmem. */
void net_shim_netmem_sync_for_cpu(netmem_ref netmem, u32 offset, u32 size)
{
	guard(rcu)();
	if (likely(lies_in_netmem(netmem, offset, size)))
		sync_netmem_for_cpu(netmem, offset, size);
}

/*
 * Nothing if it does not lie in @netmem, or is a net_iov. Nor for no bytes: DMA
 * debugging finds those in two mappings, where one ends and the next begins.
 */
void net_shim_netmem_sync_for_device(netmem_ref netmem, u32 offset, u32 size)
{
	const struct page_pool *pool = netmem_get_pp(netmem);

	if (!size || netmem_is_net_iov(netmem) || !lies_in_netmem(netmem, offset, size))
		return;
	guard(rcu)();
	if (pool->dma_sync)
		dma_sync_single_range_for_device(pool->p.dev,
						 page_pool_get_dma_addr_netmem(netmem),
						 offset, size, pool->p.dma_dir);
}

void *net_shim_netmem_address(netmem_ref netmem)
{
	return netmem_address(netmem);
}

/* A page from the reserves for emergencies: what is in it may be dropped. */
bool net_shim_netmem_is_pfmemalloc(netmem_ref netmem)
{
	return page_is_pfmemalloc(netmem_to_page(netmem));
}
