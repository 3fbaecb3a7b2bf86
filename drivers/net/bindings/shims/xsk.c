// SPDX-License-Identifier: GPL-2.0

#include <linux/dma-mapping.h>
#include <linux/skbuff.h>
#include <net/xdp_sock_drv.h>

/* Nobody reads what the device wrote before it was synchronised. */
#define NET_SHIM_XSK_DMA_ATTRS (DMA_ATTR_SKIP_CPU_SYNC | DMA_ATTR_WEAK_ORDERING)

int net_shim_xsk_map(struct xsk_buff_pool *pool, struct net_device *dev)
{
	return xsk_pool_dma_map(pool, dev->dev.parent, NET_SHIM_XSK_DMA_ATTRS);
}

void net_shim_xsk_unmap(struct xsk_buff_pool *pool)
{
	xsk_pool_dma_unmap(pool, NET_SHIM_XSK_DMA_ATTRS);
}

/* Nobody frees the user's memory any more. */
void net_shim_xsk_pin(struct xsk_buff_pool *pool)
{
	refcount_inc(&pool->umem->users);
}

void net_shim_xsk_set_rxq(struct xsk_buff_pool *pool, struct xdp_rxq_info *rxq)
{
	xsk_pool_set_rxq_info(pool, rxq);
}

u32 net_shim_xsk_frame_size(struct xsk_buff_pool *pool)
{
	return xsk_pool_get_rx_frame_size(pool);
}

struct xdp_buff *net_shim_xsk_alloc(struct xsk_buff_pool *pool, dma_addr_t *dma)
{
	struct xdp_buff *xdp = xsk_buff_alloc(pool);

	if (xdp)
		*dma = xsk_buff_xdp_get_dma(xdp);
	return xdp;
}

/* Also one that the core has freed already. */
void net_shim_xsk_free(struct xdp_buff *xdp)
{
	xsk_buff_free(xdp);
}

/* @xdp for a program: @len bytes of a frame, and what it may ask for. */
void net_shim_xsk_prepare(struct xdp_buff *xdp, u32 len, const void *metadata)
{
	static_assert(offsetof(struct xdp_buff_xsk, cb) == sizeof(struct xdp_buff));

	xsk_buff_set_size(xdp, len);
	xsk_buff_dma_sync_for_cpu(xdp);
	*(const void **)container_of(xdp, struct xdp_buff_xsk, xdp)->cb = metadata;
}

/* A copy of @xdp's frame; the protocol comes later. */
struct sk_buff *net_shim_xsk_copy(struct napi_struct *napi, const struct xdp_buff *xdp)
{
	u32 metasize = xdp->data - xdp->data_meta;
	u32 size = xdp->data_end - xdp->data_meta;
	struct sk_buff *skb = napi_alloc_skb(napi, size);

	if (unlikely(!skb))
		return NULL;

	memcpy(__skb_put(skb, size), xdp->data_meta, size);
	if (metasize) {
		skb_metadata_set(skb, metasize);
		__skb_pull(skb, metasize);
	}
	return skb;
}

u32 net_shim_xsk_tx_batch(struct xsk_buff_pool *pool, u32 max)
{
	return xsk_tx_peek_release_desc_batch(pool, max);
}

/* Descriptor @i of a batch: its length, and where the device reads it. */
u32 net_shim_xsk_tx_desc(struct xsk_buff_pool *pool, u32 i, dma_addr_t *dma)
{
	const struct xdp_desc *desc = &pool->tx_descs[i];

	*dma = xsk_buff_raw_get_dma(pool, desc->addr);
	xsk_buff_raw_dma_sync_for_device(pool, *dma, desc->len);
	return desc->len;
}

void net_shim_xsk_tx_completed(struct xsk_buff_pool *pool, u32 entries)
{
	xsk_tx_completed(pool, entries);
}

bool net_shim_xsk_uses_need_wakeup(struct xsk_buff_pool *pool)
{
	return xsk_uses_need_wakeup(pool);
}

void net_shim_xsk_set_rx_need_wakeup(struct xsk_buff_pool *pool, bool wanted)
{
	if (wanted)
		xsk_set_rx_need_wakeup(pool);
	else
		xsk_clear_rx_need_wakeup(pool);
}
