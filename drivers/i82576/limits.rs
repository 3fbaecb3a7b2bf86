// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Bounds of the device: queues, rings, buffers, frames.

/// Receive queues.
pub const MAX_RX_QUEUES: u16 = 16;

/// Transmit queues.
pub const MAX_TX_QUEUES: u16 = 16;

/// MSI-X vectors of QEMU's `igb`. Silicon has 25; the number that the MSI-X capability reports
/// is what counts.
pub const MAX_VECTORS: u16 = 10;

/// Bytes of one descriptor, receive or transmit.
pub const DESCRIPTOR_SIZE: u32 = 16;

/// Fewest descriptors of a ring, the lower bound of the kernel's `igb`.
pub const RING_MIN: u16 = 64;

/// Most descriptors of a ring, the upper bound of the kernel's `igb`.
/// RDLEN and TDLEN take 32768.
pub const RING_MAX: u16 = 4096;

/// A ring's length is a multiple of this: RDLEN and TDLEN count in units of 128 bytes.
pub const RING_MULTIPLE: u16 = 8;

/// Longest frame in bytes, header and FCS included (9.5 KiB); the most RLPML may be set to.
pub const MAX_FRAME: u32 = 0x2600;

/// Bytes of the receive packet buffer, that all queues share, after a reset.
pub const RX_PACKET_BUFFER: u32 = 64 * 1024;

/// Bytes of an Ethernet header without a VLAN tag.
pub const ETHERNET_HEADER: u32 = 14;

/// Bytes of one VLAN tag.
pub const VLAN_TAG: u32 = 4;

/// Bytes of the frame check sequence.
pub const FRAME_CHECK: u32 = 4;

/// Bytes of the shortest frame without its check sequence: shorter ones are padded.
pub const MIN_FRAME: u32 = 60;

/// Bytes of the longest frame for an MTU, with up to two VLAN tags and without FCS.
pub const fn frame_len(mtu: u32) -> u32 {
    ETHERNET_HEADER + 2 * VLAN_TAG + mtu
}

/// Bytes in one unit of SRRCTL.BSIZEHEADER.
pub const HEADER_BUFFER_UNIT: u32 = 64;

/// Largest header buffer in bytes: 15 units.
pub const HEADER_BUFFER_MAX: u32 = 960;

/// Bytes in one unit of SRRCTL.BSIZEPACKET.
pub const PAYLOAD_BUFFER_UNIT: u32 = 1024;

/// Largest payload buffer in bytes: 127 units. A frame is never longer than [`MAX_FRAME`], so a
/// buffer beyond 10 KiB is never filled, and of the powers of two 16 KiB are enough for any frame.
pub const PAYLOAD_BUFFER_MAX: u32 = 127 * PAYLOAD_BUFFER_UNIT;

/// Most bytes one transmit data descriptor should carry. The length field has 16 bits; a power
/// of two below its end keeps the pieces of a large fragment aligned.
pub const MAX_TX_FRAGMENT: u32 = 32768;

/// Longest MAC header of an offload in bytes, VLAN tags in the frame included (MACLEN, 7 bits).
pub const MAX_MAC_LEN: u8 = 127;

/// Longest IP header of an offload in bytes, options and extensions included (IPLEN, 9 bits).
pub const MAX_IP_LEN: u16 = 511;

/// Longest header of a TCP segmentation in bytes: MACLEN + IPLEN + L4LEN.
pub const MAX_TSO_HEADER: u16 = 512;

/// Most payload bytes of a TCP segmentation, headers not counted (PAYLEN, 18 bits).
pub const MAX_PAYLEN: u32 = (1 << 18) - 1;

/// Shortest frame in bytes that may be handed to the device with TCTL.PSP set, which pads it to
/// 64 bytes with FCS.
pub const MIN_TX_FRAME: u32 = 17;

/// Unicast and multicast addresses that RAL and RAH filter exactly.
pub const RECEIVE_ADDRESSES: u16 = 24;

/// Of those, how many QEMU's model looks at.
pub const RECEIVE_ADDRESSES_MODEL: u16 = 16;

/// Registers of the multicast table: 4096 hash bits.
pub const MULTICAST_TABLE: u16 = 128;

/// Registers of the VLAN filter table: one bit per VLAN ID.
pub const VLAN_TABLE: u16 = 128;

/// Five-tuple filters of silicon (FTQF and its companions). QEMU's model has none: FTQF reads
/// back as zero there.
pub const FIVE_TUPLE_FILTERS: u16 = 8;

/// Flexible filters of wake-up: the 82575 has the first four.
pub const FLEXIBLE_FILTERS: u16 = 6;

/// Bytes of a packet that a flexible filter can look at.
pub const FLEXIBLE_FILTER_LEN: u32 = 128;
