// SPDX-License-Identifier: GPL-2.0

#include <linux/bpf.h>
#include <linux/bpf_trace.h>
#include <linux/dim.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_vlan.h>
#include <linux/rcupdate.h>
#include <linux/tcp.h>
#include <net/ip6_checksum.h>
#include <net/netdev_lock.h>
#include <net/netdev_queues.h>
#include <net/page_pool/helpers.h>

#include "shims.h"

void *net_shim_netdev_priv(const struct net_device *dev)
{
	BUILD_BUG_ON(NET_SHIM_SKB_PAD != NET_SKB_PAD);

	return netdev_priv(dev);
}

void net_shim_set_netdev_dev(struct net_device *dev, struct device *parent)
{
	SET_NETDEV_DEV(dev, parent);
}

void net_shim_set_priv_flags(struct net_device *dev, bool netmem_tx)
{
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE | IFF_UNICAST_FLT;
	dev->netmem_tx = netmem_tx ? NETMEM_TX_DMA : NETMEM_TX_NONE;
}

void net_shim_count_tx_dropped(struct net_device *dev)
{
	dev_core_stats_tx_dropped_inc(dev);
}

bool net_shim_netif_running(const struct net_device *dev)
{
	return netif_running(dev);
}

void net_shim_eth_hw_addr_set(struct net_device *dev, const u8 *addr)
{
	eth_hw_addr_set(dev, addr);
}

void net_shim_eth_hw_addr_random(struct net_device *dev)
{
	eth_hw_addr_random(dev);
}

bool net_shim_is_valid_ether_addr(const u8 *addr)
{
	return is_valid_ether_addr(addr);
}

void net_shim_set_mtu(struct net_device *dev, unsigned int mtu)
{
	WRITE_ONCE(dev->mtu, mtu);
}

u64 net_shim_features(const struct net_device *dev)
{
	return READ_ONCE(dev->features);
}

void net_shim_log_link(const struct net_device *dev, bool up)
{
	netdev_info(dev, "link is %s\n", up ? "up" : "down");
}

struct netdev_queue *net_shim_get_tx_queue(const struct net_device *dev, unsigned int idx)
{
	return netdev_get_tx_queue(dev, idx);
}

void net_shim_tx_lock_bh(struct netdev_queue *txq)
{
	__netif_tx_lock_bh(txq);
}

void net_shim_tx_unlock_bh(struct netdev_queue *txq)
{
	__netif_tx_unlock_bh(txq);
}

void net_shim_tx_start_queue(struct netdev_queue *txq)
{
	netif_tx_start_queue(txq);
}

void net_shim_tx_stop_queue(struct netdev_queue *txq)
{
	netif_tx_stop_queue(txq);
}

void net_shim_tx_wake_queue(struct netdev_queue *txq)
{
	netif_tx_wake_queue(txq);
}

bool net_shim_tx_queue_stopped(const struct netdev_queue *txq)
{
	return netif_tx_queue_stopped(txq);
}

bool net_shim_tx_sent(struct netdev_queue *txq, unsigned int bytes, bool xmit_more)
{
	return __netdev_tx_sent_queue(txq, bytes, xmit_more);
}

void net_shim_tx_completed(struct netdev_queue *txq, unsigned int pkts, unsigned int bytes)
{
	netdev_txq_completed_mb(txq, pkts, bytes);
}

void net_shim_tx_reset(struct netdev_queue *txq)
{
	netdev_tx_reset_queue(txq);
}

bool net_shim_xmit_more(void)
{
	return netdev_xmit_more();
}

/* For what is sent past the core: the watchdog need not bite. */
void net_shim_tx_used(struct netdev_queue *txq)
{
	txq_trans_cond_update(txq);
}

/* This processor's TX queue. */
unsigned int net_shim_this_tx_queue(const struct net_device *dev)
{
	return raw_smp_processor_id() % READ_ONCE(dev->real_num_tx_queues);
}

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

void net_shim_skb_free_any(struct sk_buff *skb)
{
	dev_kfree_skb_any(skb);
}

/* An skb around @size bytes of @pool's memory, with @len bytes behind @headroom. */
struct sk_buff *net_shim_skb_build(const struct page_pool *pool, netmem_ref netmem, void *address,
				   u32 offset, u32 size, u32 headroom, u32 len)
{
	struct sk_buff *skb;

	page_pool_dma_sync_netmem_for_cpu(pool, netmem, offset + headroom, len);
	skb = napi_build_skb(address, size);
	if (unlikely(!skb))
		return NULL;

	skb_mark_for_recycle(skb);
	skb_reserve(skb, headroom);
	__skb_put(skb, len);
	return skb;
}

unsigned int net_shim_skb_nr_frags(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->nr_frags;
}

/* False if @skb has no room for it. */
bool net_shim_skb_add_rx_frag(const struct page_pool *pool, struct sk_buff *skb, netmem_ref netmem,
			      u32 off, u32 size, u32 truesize)
{
	if (unlikely(skb_shinfo(skb)->nr_frags >= MAX_SKB_FRAGS))
		return false;

	page_pool_dma_sync_netmem_for_cpu(pool, netmem, off, size);
	skb_add_rx_frag_netmem(skb, skb_shinfo(skb)->nr_frags, netmem, off, size, truesize);
	return true;
}

bool net_shim_skb_csum_partial(const struct sk_buff *skb)
{
	return skb->ip_summed == CHECKSUM_PARTIAL;
}

/* What the device has to do to @skb beside sending it: NET_SHIM_SKB_*. */
u32 net_shim_skb_wants(const struct sk_buff *skb)
{
	return (skb->ip_summed == CHECKSUM_PARTIAL ? NET_SHIM_SKB_CHECKSUM : 0) |
	       (skb_vlan_tag_present(skb) ? NET_SHIM_SKB_VLAN : 0);
}

u16 net_shim_skb_vlan_tag(const struct sk_buff *skb)
{
	return skb_vlan_tag_get(skb);
}

void net_shim_skb_set_vlan_tag(struct sk_buff *skb, u16 tag)
{
	__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), tag);
}

/* Hands up what the device says of a frame, and the frame. */
void net_shim_skb_receive(struct napi_struct *napi, struct net_device *dev, struct sk_buff *skb,
			  u16 queue, bool csum_verified, u32 hash, u32 hash_type)
{
	if (csum_verified)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	if (hash_type != PKT_HASH_TYPE_NONE)
		skb_set_hash(skb, hash, hash_type);
	skb_record_rx_queue(skb, queue);
	skb->protocol = eth_type_trans(skb, dev);
	napi_gro_receive(napi, skb);
}

u16 net_shim_skb_queue_mapping(const struct sk_buff *skb)
{
	return skb_get_queue_mapping(skb);
}

/* Frees the skb on failure, as skb_put_padto() does. */
int net_shim_skb_pad_min(struct sk_buff *skb, unsigned int len)
{
	return skb_put_padto(skb, len);
}

int net_shim_skb_cow_head(struct sk_buff *skb)
{
	return skb_cow_head(skb, 0);
}

bool net_shim_skb_is_gso(const struct sk_buff *skb)
{
	return skb_is_gso(skb);
}

u16 net_shim_skb_gso_size(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->gso_size;
}

u16 net_shim_skb_gso_segs(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->gso_segs;
}

unsigned int net_shim_skb_network_offset(const struct sk_buff *skb)
{
	return skb_network_offset(skb);
}

unsigned int net_shim_skb_transport_offset(const struct sk_buff *skb)
{
	return skb_checksum_start_offset(skb);
}

u16 net_shim_skb_csum_offset(const struct sk_buff *skb)
{
	return skb->csum_offset;
}

/* The protocol in or behind VLAN tags, in host order. */
u16 net_shim_skb_protocol(const struct sk_buff *skb)
{
	return ntohs(vlan_get_protocol(skb));
}

unsigned int net_shim_skb_tcp_hdrlen(const struct sk_buff *skb)
{
	return tcp_hdrlen(skb);
}

static void udp_segmentation_prepare(struct sk_buff *skb)
{
	struct udphdr *uh = udp_hdr(skb);

	if (ip_hdr(skb)->version == 4) {
		struct iphdr *iph = ip_hdr(skb);

		iph->tot_len = 0;
		iph->check = 0;
		uh->check = ~csum_tcpudp_magic(iph->saddr, iph->daddr, 0, IPPROTO_UDP, 0);
	} else {
		struct ipv6hdr *ip6h = ipv6_hdr(skb);

		ip6h->payload_len = 0;
		uh->check = ~csum_ipv6_magic(&ip6h->saddr, &ip6h->daddr, 0, IPPROTO_UDP, 0);
	}
}

/*
 * What a NIC wants of headers to segment behind: no IP length and checksum, and
 * a TCP or UDP checksum of the pseudo-header without a length.
 */
void net_shim_skb_tso_prepare(struct sk_buff *skb)
{
	if (skb_shinfo(skb)->gso_type & SKB_GSO_TCPV4) {
		struct iphdr *iph = ip_hdr(skb);

		iph->tot_len = 0;
		iph->check = 0;
		tcp_hdr(skb)->check = ~csum_tcpudp_magic(iph->saddr, iph->daddr, 0,
							 IPPROTO_TCP, 0);
	} else if (skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4) {
		udp_segmentation_prepare(skb);
	} else {
		ipv6_hdr(skb)->payload_len = 0;
		tcp_v6_gso_csum_prep(skb);
	}
}

void net_shim_skb_tx_timestamp(struct sk_buff *skb)
{
	skb_tx_timestamp(skb);
}

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

bool net_shim_is_err(const void *ptr)
{
	return IS_ERR(ptr);
}

long net_shim_ptr_err(const void *ptr)
{
	return PTR_ERR(ptr);
}

netmem_ref net_shim_pp_alloc(struct page_pool *pool, dma_addr_t *dma)
{
	netmem_ref netmem = page_pool_dev_alloc_netmems(pool);

	if (likely(netmem))
		*dma = page_pool_get_dma_addr_netmem(netmem);
	return netmem;
}

/* Readable memory with @count references. */
netmem_ref net_shim_pp_alloc_fragments(struct page_pool *pool, long count, dma_addr_t *dma,
				       void **address)
{
	netmem_ref netmem = page_pool_dev_alloc_netmems(pool);

	if (likely(netmem)) {
		page_pool_fragment_netmem(netmem, count);
		*dma = page_pool_get_dma_addr_netmem(netmem);
		*address = netmem_address(netmem);
	}
	return netmem;
}

void net_shim_pp_put_fragments(struct page_pool *pool, netmem_ref netmem, long count)
{
	if (page_pool_unref_netmem(netmem, count) == 0)
		page_pool_put_unrefed_netmem(pool, netmem, -1, false);
}

void net_shim_pp_put(netmem_ref netmem, bool direct)
{
	page_pool_put_full_netmem(netmem_get_pp(netmem), netmem, direct);
}

void net_shim_pp_sync_for_cpu(const struct page_pool *pool, netmem_ref netmem, u32 offset,
			      u32 size)
{
	page_pool_dma_sync_netmem_for_cpu(pool, netmem, offset, size);
}

bool net_shim_pp_is_unreadable(struct page_pool *pool)
{
	return page_pool_is_unreadable(pool);
}

void *net_shim_netmem_address(netmem_ref netmem)
{
	return netmem_address(netmem);
}

void net_shim_dim_init(struct dim *dim, void (*work)(struct work_struct *))
{
	memset(dim, 0, sizeof(*dim));
	dim->mode = DIM_CQ_PERIOD_MODE_START_FROM_EQE;
	INIT_WORK(&dim->work, work);
}

void net_shim_dim_sample(struct dim *dim, u16 events, u64 packets, u64 bytes)
{
	struct dim_sample sample = {};

	dim_update_sample(events, packets, bytes, &sample);
	net_dim(dim, &sample);
}

u16 net_shim_dim_rx_usec(const struct dim *dim)
{
	return net_dim_get_rx_moderation(dim->mode, dim->profile_ix).usec;
}

/* What was decided is in effect: measure again. */
void net_shim_dim_applied(struct dim *dim)
{
	dim->state = DIM_START_MEASURE;
}

void net_shim_prog_inc(struct bpf_prog *prog)
{
	bpf_prog_inc(prog);
}

void net_shim_prog_put(struct bpf_prog *prog)
{
	bpf_prog_put(prog);
}

/* @xdp for @size bytes of @rxq's pool, with @len bytes of a frame behind @headroom. */
void net_shim_xdp_prepare(struct xdp_buff *xdp, struct xdp_rxq_info *rxq, netmem_ref netmem,
			  void *address, u32 offset, u32 size, u32 headroom, u32 len)
{
	page_pool_dma_sync_netmem_for_cpu(netmem_get_pp(netmem), netmem, offset + headroom, len);
	xdp_init_buff(xdp, size, rxq);
	xdp_prepare_buff(xdp, address, headroom, len, true);
}

u32 net_shim_xdp_run(const struct bpf_prog *prog, struct xdp_buff *xdp)
{
	return bpf_prog_run_xdp(prog, xdp);
}

/* As xdp_build_skb_from_buff(), for linear ones; the protocol comes later. */
struct sk_buff *net_shim_xdp_build_skb(struct xdp_buff *xdp)
{
	struct sk_buff *skb = napi_build_skb(xdp->data_hard_start, xdp->frame_sz);

	if (unlikely(!skb))
		return NULL;

	skb_mark_for_recycle(skb);
	skb_reserve(skb, xdp->data - xdp->data_hard_start);
	__skb_put(skb, xdp->data_end - xdp->data);
	if (xdp->data > xdp->data_meta)
		skb_metadata_set(skb, xdp->data - xdp->data_meta);
	return skb;
}

struct xdp_frame *net_shim_xdp_to_frame(struct xdp_buff *xdp)
{
	return xdp_convert_buff_to_frame(xdp);
}

/* @prog's wish could not be fulfilled; or nobody knows what it wants. */
void net_shim_xdp_failed(const struct net_device *dev, const struct bpf_prog *prog, u32 act)
{
	if (act > XDP_REDIRECT)
		bpf_warn_invalid_xdp_action(dev, prog, act);
	trace_xdp_exception(dev, prog, act);
}

void net_shim_ethtool_puts(u8 **data, const char *str)
{
	ethtool_puts(data, str);
}

/* @msg must live as long as the kernel does, or the module: a literal. */
void net_shim_set_extack(struct netlink_ext_ack *extack, const char *msg)
{
	if (extack)
		extack->_msg = msg;
}
