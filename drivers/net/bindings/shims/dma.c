// SPDX-License-Identifier: GPL-2.0

#include <linux/dma-mapping.h>
#include <linux/skbuff.h>

/* DMA_MAPPING_ERROR if the mapping failed; as DMA debugging wants, somebody looks. */
dma_addr_t net_shim_dma_map_single(struct device *dev, void *ptr, size_t size)
{
	dma_addr_t addr = dma_map_single(dev, ptr, size, DMA_TO_DEVICE);

	return dma_mapping_error(dev, addr) ? DMA_MAPPING_ERROR : addr;
}

void net_shim_dma_unmap_single(struct device *dev, dma_addr_t addr, size_t size)
{
	dma_unmap_single(dev, addr, size, DMA_TO_DEVICE);
}

/*
 * Maps fragment @i of @skb; DMA_MAPPING_ERROR if that failed, 0 fragments if
 * there is none. Net_iovs are mapped already: those after it that adjoin in DMA
 * addresses are taken along, up to @max bytes.
 */
void net_shim_skb_frags_dma_map(struct device *dev, const struct sk_buff *skb, unsigned int i,
				u32 max, struct net_shim_mapped *mapped)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	const skb_frag_t *frag = &shinfo->frags[i];
	const skb_frag_t *end = &shinfo->frags[shinfo->nr_frags];

	mapped->frags = 0;
	if (unlikely(i >= shinfo->nr_frags))
		return;

	mapped->addr = skb_frag_dma_map(dev, frag);
	mapped->len = skb_frag_size(frag);
	mapped->net_iov = skb_frag_is_net_iov(frag);
	mapped->frags = 1;
	if (!mapped->net_iov) {
		if (dma_mapping_error(dev, mapped->addr))
			mapped->addr = DMA_MAPPING_ERROR;
		return;
	}
	while (++frag < end && skb_frag_is_net_iov(frag) &&
	       skb_frag_dma_map(dev, frag) == mapped->addr + mapped->len &&
	       mapped->len + skb_frag_size(frag) <= max) {
		mapped->len += skb_frag_size(frag);
		mapped->frags++;
	}
}

void net_shim_dma_unmap_page(struct device *dev, dma_addr_t addr, size_t size)
{
	dma_unmap_page(dev, addr, size, DMA_TO_DEVICE);
}
