// SPDX-License-Identifier: GPL-2.0

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip6_checksum.h>
#include <net/page_pool/helpers.h>

/* An skb with a copy of @len bytes in a head of its own, in a poll with a budget. */
struct sk_buff *net_shim_napi_skb_of(const void *data, unsigned int len)
{
	struct sk_buff *skb = __alloc_skb(NET_SKB_PAD + len, GFP_ATOMIC | __GFP_NOWARN,
					  SKB_ALLOC_RX | SKB_ALLOC_NAPI, NUMA_NO_NODE);

	if (unlikely(!skb))
		return NULL;
	skb_reserve(skb, NET_SKB_PAD);
	skb_put_data(skb, data, len);
	skb_mark_for_recycle(skb);
	return skb;
}

/* The protocol in or behind VLAN tags, in host order. */
u16 net_shim_skb_protocol(const struct sk_buff *skb)
{
	return ntohs(vlan_get_protocol(skb));
}

/* Whether @len bytes of the transport header are where they can be read. */
static bool transport_header_is_linear(const struct sk_buff *skb, unsigned int len)
{
	return skb_transport_header_was_set(skb) &&
	       skb_transport_offset(skb) + len <= skb_headlen(skb);
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
int net_shim_skb_tso_prepare(struct sk_buff *skb)
{
	int err;

	if (unlikely(skb_shared(skb)))
		return -EBUSY;
	err = skb_cow_head(skb, 0);
	if (unlikely(err))
		return err;
	if (unlikely(!skb_is_gso(skb) ||
		     !transport_header_is_linear(skb, skb_is_gso_tcp(skb) ? sizeof(struct tcphdr) :
								  sizeof(struct udphdr))))
		return -EINVAL;

	if (skb_shinfo(skb)->gso_type & SKB_GSO_TCPV4) {
		struct iphdr *iph = ip_hdr(skb);

		iph->tot_len = 0;
		iph->check = 0;
		tcp_hdr(skb)->check = ~csum_tcpudp_magic(iph->saddr, iph->daddr, 0,
							 IPPROTO_TCP, 0);
	} else if (skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4) {
		udp_segmentation_prepare(skb);
	} else if (skb_shinfo(skb)->gso_type & SKB_GSO_TCPV6) {
		ipv6_hdr(skb)->payload_len = 0;
		tcp_v6_gso_csum_prep(skb);
	} else {
		return -EINVAL;
	}
	return 0;
}
