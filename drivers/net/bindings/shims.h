/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Static inlines and macros of the networking core as functions, so that Rust
 * can call them, where they are more than an access to a field or a call of an
 * exported function. Documentation/driver.md says of each why it is here.
 */

#ifndef NOBOUNCE_NET_SHIMS_H
#define NOBOUNCE_NET_SHIMS_H

#include <linux/netdevice.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/skbuff.h>
#include <net/netmem.h>
#include <net/page_pool/types.h>
#include <net/xdp.h>

/* NET_SKB_PAD, without the max() that libclang refuses; shims/netdevice.c checks it. */
enum { NET_SHIM_SKB_PAD = L1_CACHE_BYTES > 32 ? L1_CACHE_BYTES : 32 };

enum { NET_SHIM_CACHE_BYTES = SMP_CACHE_BYTES };

/* net_device */
void net_shim_count_rx(struct net_device *dev, unsigned int len);
void net_shim_count_tx(struct net_device *dev, unsigned int len);
void net_shim_work_sched(struct net_device *dev, unsigned long events);

/* TX queues */
void net_shim_tx_lock_bh(struct netdev_queue *txq);
void net_shim_tx_unlock_bh(struct netdev_queue *txq);
void net_shim_tx_stop_queue(struct netdev_queue *txq);
bool net_shim_tx_sent(struct netdev_queue *txq, unsigned int bytes, bool xmit_more);
void net_shim_tx_completed(struct netdev_queue *txq, unsigned int pkts, unsigned int bytes);
bool net_shim_xmit_more(void);
bool net_shim_tx_drained(struct netdev_queue *txq);

/* NAPI */
void net_shim_napi_add(struct net_device *dev, struct napi_struct *napi,
		       int (*poll)(struct napi_struct *, int), unsigned int index);
void net_shim_napi_gro_flush(struct napi_struct *napi);

/* sk_buff */
struct sk_buff *net_shim_napi_skb_of(const void *data, unsigned int len);
u16 net_shim_skb_protocol(const struct sk_buff *skb);
int net_shim_skb_tso_prepare(struct sk_buff *skb);

/* DMA */
dma_addr_t net_shim_dma_map_single(struct device *dev, void *ptr, size_t size);

/* page_pool and netmem */
void net_shim_pp_put_fragments(struct page_pool *pool, netmem_ref netmem, long count);
void net_shim_pp_put(netmem_ref netmem);
void net_shim_netmem_sync_for_cpu(netmem_ref netmem, u32 offset, u32 size);
void net_shim_netmem_sync_for_device(netmem_ref netmem, u32 offset, u32 size);
bool net_shim_netmem_is_pfmemalloc(netmem_ref netmem);
void *net_shim_netmem_address(netmem_ref netmem);

/* XDP */
void net_shim_prog_inc(struct bpf_prog *prog);
void net_shim_prog_put(struct bpf_prog *prog);
bool net_shim_prog_has_frags(const struct bpf_prog *prog);
u32 net_shim_xdp_run(const struct bpf_prog *prog, struct xdp_buff *xdp);
struct sk_buff *net_shim_xdp_build_skb(struct xdp_buff *xdp);
void net_shim_xdp_return_frame(struct xdp_frame *frame);
struct xdp_frame *net_shim_xdp_to_frame(struct xdp_buff *xdp);
void net_shim_xdp_failed(const struct net_device *dev, const struct bpf_prog *prog, u32 act);

/* PTP clocks */
struct ptp_clock *net_shim_ptp_register(struct ptp_clock_info *info, struct device *parent);
void net_shim_ptp_unregister(struct ptp_clock *ptp);
int net_shim_ptp_index(struct ptp_clock *ptp);
void net_shim_ptp_schedule_worker(struct ptp_clock *ptp);
void net_shim_ptp_cancel_worker(struct ptp_clock *ptp);
void net_shim_ptp_read_system_prets(struct ptp_system_timestamp *sts);
void net_shim_ptp_read_system_postts(struct ptp_system_timestamp *sts);

/* AF_XDP */
int net_shim_xsk_map(struct xsk_buff_pool *pool, struct net_device *dev);
void net_shim_xsk_unmap(struct xsk_buff_pool *pool);
void net_shim_xsk_pin(struct xsk_buff_pool *pool);
void net_shim_xsk_set_rxq(struct xsk_buff_pool *pool, struct xdp_rxq_info *rxq);
u32 net_shim_xsk_frame_size(struct xsk_buff_pool *pool);
struct xdp_buff *net_shim_xsk_alloc(struct xsk_buff_pool *pool, dma_addr_t *dma);
void net_shim_xsk_free(struct xdp_buff *xdp);
void net_shim_xsk_prepare(struct xdp_buff *xdp, u32 len, const void *metadata);
struct sk_buff *net_shim_xsk_copy(struct napi_struct *napi, const struct xdp_buff *xdp);
u32 net_shim_xsk_tx_batch(struct xsk_buff_pool *pool, u32 max);
u32 net_shim_xsk_tx_desc(struct xsk_buff_pool *pool, u32 i, dma_addr_t *dma);
void net_shim_xsk_tx_completed(struct xsk_buff_pool *pool, u32 entries);
bool net_shim_xsk_uses_need_wakeup(struct xsk_buff_pool *pool);
void net_shim_xsk_set_rx_need_wakeup(struct xsk_buff_pool *pool, bool wanted);

#endif
