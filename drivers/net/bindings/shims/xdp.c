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

bool net_shim_prog_has_frags(const struct bpf_prog *prog)
{
	return prog->aux->xdp_has_frags;
}

u32 net_shim_xdp_run(const struct bpf_prog *prog, struct xdp_buff *xdp)
{
	return bpf_prog_run_xdp(prog, xdp);
}

/* As xdp_build_skb_from_buff(); the protocol comes later. */
struct sk_buff *net_shim_xdp_build_skb(struct xdp_buff *xdp)
{
	const struct skb_shared_info *info = xdp_get_shared_info_from_buff(xdp);
	u8 frags = xdp_buff_has_frags(xdp) ? info->nr_frags : 0;
	struct sk_buff *skb = napi_build_skb(xdp->data_hard_start, xdp->frame_sz);

	if (unlikely(!skb))
		return NULL;

	skb_mark_for_recycle(skb);
	skb_reserve(skb, xdp->data - xdp->data_hard_start);
	__skb_put(skb, xdp->data_end - xdp->data);
	if (xdp->data > xdp->data_meta)
		skb_metadata_set(skb, xdp->data - xdp->data_meta);
	if (frags)
		xdp_update_skb_frags_info(skb, frags, info->xdp_frags_size,
					  info->xdp_frags_truesize, xdp_buff_get_skb_flags(xdp));
	return skb;
}

/* From any context. */
void net_shim_xdp_return_frame(struct xdp_frame *frame)
{
	const struct skb_shared_info *info = xdp_get_shared_info_from_frame(frame);

	if (likely(!in_hardirq() && !irqs_disabled()) || frame->mem_type != MEM_TYPE_PAGE_POOL) {
		xdp_return_frame(frame);
		return;
	}
	for (u8 i = 0; xdp_frame_has_frags(frame) && i < info->nr_frags; i++)
		put_later(skb_frag_netmem(&info->frags[i]));
	put_later(page_to_netmem(virt_to_head_page(frame->data)));
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
