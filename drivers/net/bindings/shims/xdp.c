// SPDX-License-Identifier: GPL-2.0

#include <linux/bpf.h>
#include <linux/bpf_trace.h>
#include <linux/filter.h>
#include <linux/skbuff.h>
#include <net/page_pool/helpers.h>
#include <net/xdp.h>

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
	sync_netmem_for_cpu(netmem, offset + headroom, len);
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

/* From any context; without fragments. */
void net_shim_xdp_return_frame(struct xdp_frame *frame)
{
	if (unlikely(in_hardirq() || irqs_disabled()) && frame->mem_type == MEM_TYPE_PAGE_POOL)
		put_later(page_to_netmem(virt_to_head_page(frame->data)));
	else
		xdp_return_frame(frame);
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
