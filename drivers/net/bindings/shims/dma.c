// SPDX-License-Identifier: GPL-2.0

#include <linux/dma-mapping.h>

/* DMA_MAPPING_ERROR if the mapping failed; as DMA debugging wants, somebody looks. */
dma_addr_t net_shim_dma_map_single(struct device *dev, void *ptr, size_t size)
{
	dma_addr_t addr = dma_map_single(dev, ptr, size, DMA_TO_DEVICE);

	return dma_mapping_error(dev, addr) ? DMA_MAPPING_ERROR : addr;
}
