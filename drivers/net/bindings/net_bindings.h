/* SPDX-License-Identifier: GPL-2.0 */
/* What bindgen reads: see bindgen_parameters for what it takes from it. */

#include <linux/dim.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/skbuff.h>
#include <net/netdev_lock.h>
#include <net/netdev_queues.h>
#include <net/netdev_rx_queue.h>
#include <net/page_pool/helpers.h>
#include <net/page_pool/memory_provider.h>
#include <net/xdp.h>

#include "shims.h"

/* Macros that bindgen cannot evaluate. */
static const unsigned int NET_PP_FLAG_DMA_MAP = PP_FLAG_DMA_MAP;
static const unsigned int NET_PP_FLAG_DMA_SYNC_DEV = PP_FLAG_DMA_SYNC_DEV;
static const unsigned int NET_PP_FLAG_ALLOW_UNREADABLE_NETMEM =
	PP_FLAG_ALLOW_UNREADABLE_NETMEM;
/* As page_pool_dev_alloc_netmems() has it. */
static const gfp_t NET_SHIM_GFP_POOL = GFP_ATOMIC | __GFP_NOWARN;
static const u64 NET_SHIM_F_SG = NETIF_F_SG;
static const u64 NET_SHIM_F_HW_CSUM = NETIF_F_HW_CSUM;
static const u64 NET_SHIM_F_IP_CSUM = NETIF_F_IP_CSUM;
static const u64 NET_SHIM_F_IPV6_CSUM = NETIF_F_IPV6_CSUM;
static const u64 NET_SHIM_F_TSO = NETIF_F_TSO;
static const u64 NET_SHIM_F_TSO6 = NETIF_F_TSO6;
static const u64 NET_SHIM_F_UDP_SEGMENTATION = NETIF_F_GSO_UDP_L4;
static const u64 NET_SHIM_F_TSO_ECN = NETIF_F_TSO_ECN;
static const u64 NET_SHIM_F_TSO_MANGLEID = NETIF_F_TSO_MANGLEID;
static const u64 NET_SHIM_F_RXCSUM = NETIF_F_RXCSUM;
static const u64 NET_SHIM_F_RXHASH = NETIF_F_RXHASH;
static const u64 NET_SHIM_F_HIGHDMA = NETIF_F_HIGHDMA;
static const u64 NET_SHIM_F_VLAN_INSERT = NETIF_F_HW_VLAN_CTAG_TX;
static const u64 NET_SHIM_F_VLAN_STRIP = NETIF_F_HW_VLAN_CTAG_RX;
static const u64 NET_SHIM_F_VLAN_FILTER = NETIF_F_HW_VLAN_CTAG_FILTER;
static const u64 NET_SHIM_F_NTUPLE = NETIF_F_NTUPLE;
static const unsigned int NET_SHIM_SHARED_INFO =
	SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
static const u8 NET_SHIM_TX_TIMESTAMP = SKBTX_HW_TSTAMP;
static const unsigned int NET_SHIM_MAX_SKB_FRAGS = MAX_SKB_FRAGS;
static const unsigned int NET_SHIM_RSS_HASH_TOP = ETH_RSS_HASH_TOP;
static const unsigned int NET_SHIM_RSS_HASH_XOR = ETH_RSS_HASH_XOR;
static const unsigned int NET_SHIM_RSS_HASH_CRC32 = ETH_RSS_HASH_CRC32;
static const unsigned int NET_SHIM_OPS_NEED_RTNL =
	ETHTOOL_OP_NEEDS_RTNL_GLINK | ETHTOOL_OP_NEEDS_RTNL_SCHANNELS;
static const unsigned int NET_SHIM_SPEED_UNKNOWN = (unsigned int)SPEED_UNKNOWN;
static const unsigned int NET_SHIM_MSG_LINK = NETIF_MSG_LINK;
#define NET_SHIM_COALESCE(name) \
	static const unsigned int NET_SHIM_COALESCE_##name = ETHTOOL_COALESCE_##name
NET_SHIM_COALESCE(RX_USECS);
NET_SHIM_COALESCE(RX_MAX_FRAMES);
NET_SHIM_COALESCE(RX_USECS_IRQ);
NET_SHIM_COALESCE(RX_MAX_FRAMES_IRQ);
NET_SHIM_COALESCE(TX_USECS);
NET_SHIM_COALESCE(TX_MAX_FRAMES);
NET_SHIM_COALESCE(TX_USECS_IRQ);
NET_SHIM_COALESCE(TX_MAX_FRAMES_IRQ);
NET_SHIM_COALESCE(STATS_BLOCK_USECS);
NET_SHIM_COALESCE(USE_ADAPTIVE_RX);
NET_SHIM_COALESCE(USE_ADAPTIVE_TX);
NET_SHIM_COALESCE(PKT_RATE_LOW);
NET_SHIM_COALESCE(RX_USECS_LOW);
NET_SHIM_COALESCE(RX_MAX_FRAMES_LOW);
NET_SHIM_COALESCE(TX_USECS_LOW);
NET_SHIM_COALESCE(TX_MAX_FRAMES_LOW);
NET_SHIM_COALESCE(PKT_RATE_HIGH);
NET_SHIM_COALESCE(RX_USECS_HIGH);
NET_SHIM_COALESCE(RX_MAX_FRAMES_HIGH);
NET_SHIM_COALESCE(TX_USECS_HIGH);
NET_SHIM_COALESCE(TX_MAX_FRAMES_HIGH);
NET_SHIM_COALESCE(RATE_SAMPLE_INTERVAL);
NET_SHIM_COALESCE(USE_CQE_RX);
NET_SHIM_COALESCE(USE_CQE_TX);
NET_SHIM_COALESCE(TX_AGGR_MAX_BYTES);
NET_SHIM_COALESCE(TX_AGGR_MAX_FRAMES);
NET_SHIM_COALESCE(TX_AGGR_TIME_USECS);
NET_SHIM_COALESCE(RX_CQE_FRAMES);
NET_SHIM_COALESCE(RX_CQE_NSECS);
#undef NET_SHIM_COALESCE
static const unsigned int NET_SHIM_TCP_DATA_SPLIT_UNKNOWN =
	ETHTOOL_TCP_DATA_SPLIT_UNKNOWN;
static const unsigned int NET_SHIM_TCP_DATA_SPLIT_DISABLED =
	ETHTOOL_TCP_DATA_SPLIT_DISABLED;
static const unsigned int NET_SHIM_TCP_DATA_SPLIT_ENABLED =
	ETHTOOL_TCP_DATA_SPLIT_ENABLED;
static const unsigned int NET_SHIM_XDP_PACKET_HEADROOM = XDP_PACKET_HEADROOM;
static const unsigned int NET_SHIM_XDP_XMIT_FLUSH = XDP_XMIT_FLUSH;
static const unsigned int NET_SHIM_XDP_XMIT_FLAGS = XDP_XMIT_FLAGS_MASK;
static const unsigned int NET_SHIM_GSO_TCPV4 = SKB_GSO_TCPV4;
static const unsigned int NET_SHIM_GSO_TCPV6 = SKB_GSO_TCPV6;
static const unsigned int NET_SHIM_GSO_UDP_L4 = SKB_GSO_UDP_L4;
