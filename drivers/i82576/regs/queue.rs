// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Registers of one receive or transmit queue.
//!
//! Sixteen blocks of 0x40 bytes, receive queues from 0xc000 and transmit queues from 0xe000.
//! Queues 0 to 3 answer at the 82575's offsets too (0x2800 and 0x3800, 0x100 apart); those are
//! aliases of the same registers and are not used here. A queue number is taken modulo 16.

use super::{
    element,
    Reg, //
};

const RX: u32 = 0x0c000;
const TX: u32 = 0x0e000;
const STRIDE: u32 = 0x40;
const QUEUES: u32 = 16;

/// Receive descriptor base address of queue `q`, low; a multiple of 128.
#[inline]
pub const fn rdbal(q: u16) -> Reg {
    element(RX, STRIDE, QUEUES, q)
}

/// Receive descriptor base address of queue `q`, high.
#[inline]
pub const fn rdbah(q: u16) -> Reg {
    element(RX + 0x04, STRIDE, QUEUES, q)
}

/// Receive ring length of queue `q` in bytes; a multiple of 128.
#[inline]
pub const fn rdlen(q: u16) -> Reg {
    element(RX + 0x08, STRIDE, QUEUES, q)
}

/// Split and replication receive control of queue `q`; see [`srrctl`](mod@srrctl).
#[inline]
pub const fn srrctl(q: u16) -> Reg {
    element(RX + 0x0c, STRIDE, QUEUES, q)
}

/// Receive descriptor head of queue `q`: the next one the device fills.
#[inline]
pub const fn rdh(q: u16) -> Reg {
    element(RX + 0x10, STRIDE, QUEUES, q)
}

/// Receive DCA control of queue `q`.
#[inline]
pub const fn rxctl(q: u16) -> Reg {
    element(RX + 0x14, STRIDE, QUEUES, q)
}

/// Receive descriptor tail of queue `q`: one past the last the device may fill. Silicon ignores
/// a write while the queue is disabled.
#[inline]
pub const fn rdt(q: u16) -> Reg {
    element(RX + 0x18, STRIDE, QUEUES, q)
}

/// Receive descriptor control of queue `q`; see [`rxdctl`](mod@rxdctl).
#[inline]
pub const fn rxdctl(q: u16) -> Reg {
    element(RX + 0x28, STRIDE, QUEUES, q)
}

/// Packets that queue `q` dropped for lack of a descriptor; cleared by reading.
#[inline]
pub const fn rqdpc(q: u16) -> Reg {
    element(RX + 0x30, STRIDE, QUEUES, q)
}

/// Transmit descriptor base address of queue `q`, low; a multiple of 128.
#[inline]
pub const fn tdbal(q: u16) -> Reg {
    element(TX, STRIDE, QUEUES, q)
}

/// Transmit descriptor base address of queue `q`, high.
#[inline]
pub const fn tdbah(q: u16) -> Reg {
    element(TX + 0x04, STRIDE, QUEUES, q)
}

/// Transmit ring length of queue `q` in bytes; a multiple of 128.
#[inline]
pub const fn tdlen(q: u16) -> Reg {
    element(TX + 0x08, STRIDE, QUEUES, q)
}

/// Transmit descriptor head of queue `q`: the next one the device fetches.
#[inline]
pub const fn tdh(q: u16) -> Reg {
    element(TX + 0x10, STRIDE, QUEUES, q)
}

/// Transmit DCA control of queue `q`.
#[inline]
pub const fn txctl(q: u16) -> Reg {
    element(TX + 0x14, STRIDE, QUEUES, q)
}

/// Transmit descriptor tail of queue `q`: one past the last the device may fetch.
#[inline]
pub const fn tdt(q: u16) -> Reg {
    element(TX + 0x18, STRIDE, QUEUES, q)
}

/// Transmit descriptor control of queue `q`; see [`txdctl`](mod@txdctl).
#[inline]
pub const fn txdctl(q: u16) -> Reg {
    element(TX + 0x28, STRIDE, QUEUES, q)
}

/// Head write-back address of transmit queue `q`, low; bit 0 enables head write-back.
#[inline]
pub const fn tdwbal(q: u16) -> Reg {
    element(TX + 0x38, STRIDE, QUEUES, q)
}

/// Head write-back address of transmit queue `q`, high.
#[inline]
pub const fn tdwbah(q: u16) -> Reg {
    element(TX + 0x3c, STRIDE, QUEUES, q)
}

/// Which header types are split, for queue `q`; see [`psrtype`](mod@psrtype). QEMU's model
/// splits TCP and UDP regardless of its value.
#[inline]
pub const fn psrtype(q: u16) -> Reg {
    element(0x05480, 4, QUEUES, q)
}

/// Split and replication receive control: buffer sizes and descriptor type of a receive queue.
pub mod srrctl {
    use crate::limits::{
        HEADER_BUFFER_MAX,
        HEADER_BUFFER_UNIT, //
    };

    /// How the device uses the two buffers of a receive descriptor. The decoding of each is
    /// described at [`WriteBack::layout`](crate::rx::WriteBack::layout).
    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    #[repr(u32)]
    pub enum DescType {
        /// Legacy descriptors.
        Legacy = 0,
        /// Advanced descriptors, payload buffer only.
        OneBuffer = 1,
        /// Header split: what can be split goes into both buffers, anything else into the
        /// payload buffer.
        HeaderSplit = 2,
        /// Header split, and every packet starts in the header buffer.
        HeaderSplitAlways = 5,
    }

    /// Drop a packet at once when the ring has no descriptor for it, instead of holding up the
    /// packet buffer that all queues share.
    pub const DROP_EN: u32 = 1 << 31;

    /// Largest value of BSIZEPACKET.
    pub const BSIZEPACKET_MAX: u32 = 0x7f;
    /// Largest value of BSIZEHEADER.
    pub const BSIZEHEADER_MAX: u32 = HEADER_BUFFER_MAX / HEADER_BUFFER_UNIT;

    const BSIZEHEADER_SHIFT: u32 = 8;
    const DESCTYPE_SHIFT: u32 = 25;

    /// The register's value. `payload_kib` is the payload buffer's size in units of 1 KiB, at
    /// most [`BSIZEPACKET_MAX`]; `header_units` is the header buffer's in units of 64 bytes, at
    /// most [`BSIZEHEADER_MAX`]. What is larger is written as the largest: the device then uses
    /// less of the buffer, never more.
    #[inline]
    pub const fn encode(
        payload_kib: u32,
        header_units: u32,
        desc_type: DescType,
        drop_en: bool,
    ) -> u32 {
        let packet = if payload_kib > BSIZEPACKET_MAX {
            BSIZEPACKET_MAX
        } else {
            payload_kib
        };
        let header = if header_units > BSIZEHEADER_MAX {
            BSIZEHEADER_MAX
        } else {
            header_units
        };
        let drop_en = if drop_en { DROP_EN } else { 0 };
        packet | header << BSIZEHEADER_SHIFT | (desc_type as u32) << DESCTYPE_SHIFT | drop_en
    }
}

/// Receive descriptor control.
pub mod rxdctl {
    pub use super::thresholds;

    /// The queue is enabled. Reads back as 0 only when the queue has come to rest, so poll it
    /// after clearing.
    pub const ENABLE: u32 = 1 << 25;
    /// Write back all descriptors that are done, whatever WTHRESH; clears itself.
    pub const SWFLSH: u32 = 1 << 26;
}

/// Transmit descriptor control.
pub mod txdctl {
    pub use super::thresholds;

    /// The queue is enabled. Reads back as 0 only when the queue has come to rest, so poll it
    /// after clearing.
    pub const ENABLE: u32 = 1 << 25;
    /// Write back all descriptors that are done, whatever WTHRESH; clears itself.
    pub const SWFLSH: u32 = 1 << 26;
    /// The queue has high priority in arbitration.
    pub const PRIORITY: u32 = 1 << 27;
}

/// The threshold fields of RXDCTL and TXDCTL, each 0..=31 descriptors: the device considers a
/// prefetch with fewer than `prefetch` left on chip (0: never) once `host` are ready in memory,
/// and writes back when `write_back` are done.
#[inline]
pub const fn thresholds(prefetch: u8, host: u8, write_back: u8) -> u32 {
    (prefetch as u32 & 0x1f) | (host as u32 & 0x1f) << 8 | (write_back as u32 & 0x1f) << 16
}

/// Packet split receive type: a bit per header type, set to split it. NFS is TCP or UDP with
/// port 2049.
pub mod psrtype {
    /// IPv4, no TCP or UDP header (fragments among them).
    pub const IPV4: u32 = 1 << 1;
    /// IPv4 and TCP.
    pub const IPV4_TCP: u32 = 1 << 2;
    /// IPv4 and UDP.
    pub const IPV4_UDP: u32 = 1 << 3;
    /// IPv6 in IPv4.
    pub const IPV4_IPV6: u32 = 1 << 4;
    /// IPv6 in IPv4, and TCP.
    pub const IPV4_IPV6_TCP: u32 = 1 << 5;
    /// IPv6 in IPv4, and UDP.
    pub const IPV4_IPV6_UDP: u32 = 1 << 6;
    /// IPv6, no TCP or UDP header.
    pub const IPV6: u32 = 1 << 7;
    /// IPv6 and TCP.
    pub const IPV6_TCP: u32 = 1 << 8;
    /// IPv6 and UDP.
    pub const IPV6_UDP: u32 = 1 << 9;
    /// IPv4, TCP and NFS.
    pub const IPV4_TCP_NFS: u32 = 1 << 11;
    /// IPv4, UDP and NFS.
    pub const IPV4_UDP_NFS: u32 = 1 << 12;
    /// IPv6, TCP and NFS.
    pub const IPV6_TCP_NFS: u32 = 1 << 17;
    /// IPv6, UDP and NFS.
    pub const IPV6_UDP_NFS: u32 = 1 << 18;

    /// TCP over IPv4 and IPv6. With these alone port 2049 stays unsplit, since NFS packets are a
    /// type of their own and their split would take the RPC header along; RFCTL's NFS bits make
    /// them plain TCP.
    pub const TCP: u32 = IPV4_TCP | IPV6_TCP;
    /// UDP over IPv4 and IPv6.
    pub const UDP: u32 = IPV4_UDP | IPV6_UDP;
}
