// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Advanced transmit descriptors (82576 datasheet, chapter "Inline Functions", transmit).
//!
//! A packet is a chain of [`Data`] descriptors, the last with `end_of_packet`. An offload takes a
//! [`Context`] descriptor first, which the device keeps until the next one of the same queue and
//! index, so that packets alike can share it:
//!
//! ```text
//!          63     48 47   40 39 36 35  32 31    24 23  20 19 16 15     9 8     0
//! context |            zero              |     VLAN tag        | MACLEN | IPLEN |  lo
//!         |   MSS   | L4LEN | IDX |      | DEXT   | DTYP  |      TUCMD          |  hi
//! data    |                           address                                   |  lo
//!         | PAYLEN     | POPTS |CC IDX|STA| DCMD  | DTYP  |     | length        |  hi
//! ```
//!
//! The device reports completion by setting DD in the descriptors that asked for a report; see
//! [`is_done`].

/// A descriptor: the host-order values of its two little-endian quadwords.
pub type Raw = [u64; 2];

// Bits of the second quadword, both formats.
const DTYP_MASK: u64 = 0xf << 20;
const DTYP_CONTEXT: u64 = 2 << 20;
const DTYP_DATA: u64 = 3 << 20;
const DEXT: u64 = 1 << 29;
const IDX_SHIFT: u32 = 36;
const IDX_MASK: u8 = 7;

// Bits of the second quadword, context.
const TUCMD_IPV4: u64 = 1 << 10;
const TUCMD_L4T_SHIFT: u32 = 11;
const L4LEN_SHIFT: u32 = 40;
const MSS_SHIFT: u32 = 48;

// Bits of the first quadword, context.
const IPLEN_MASK: u64 = 0x1ff;
const MACLEN_SHIFT: u32 = 9;
const MACLEN_MASK: u64 = 0x7f;
const VLAN_SHIFT: u32 = 16;

// Bits of the second quadword, data.
const TIMESTAMP: u64 = 1 << 19;
const EOP: u64 = 1 << 24;
const IFCS: u64 = 1 << 25;
const RS: u64 = 1 << 27;
const VLE: u64 = 1 << 30;
const TSE: u64 = 1 << 31;
const DD: u64 = 1 << 32;
const CC: u64 = 1 << 39;
const IXSM: u64 = 1 << 40;
const TXSM: u64 = 1 << 41;
const PAYLEN_SHIFT: u32 = 46;

/// Whether the device is done with a descriptor that asked for a report, by its second quadword.
/// [`Context::encode`] and [`Data::encode`] leave the bit clear.
#[inline]
pub const fn is_done(hi: u64) -> bool {
    hi & DD != 0
}

/// A data descriptor made the last of its packet: `end_of_packet` and `report_status` of [`Data`].
#[inline]
pub const fn ended(raw: Raw) -> Raw {
    [raw[0], raw[1] | EOP | RS]
}

/// A descriptor's second quadword as the device writes it back.
#[inline]
pub const fn write_back() -> u64 {
    DD
}

/// Version of the IP header of an offload.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Transport protocol of an offload.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum L4 {
    /// UDP.
    #[default]
    Udp = 0,
    /// TCP.
    Tcp = 1,
    /// SCTP.
    Sctp = 2,
}

impl L4 {
    /// Bytes of its shortest header: L4LEN is no less.
    #[inline]
    pub const fn shortest_header(self) -> u8 {
        match self {
            Self::Udp => 8,
            Self::Tcp => 20,
            Self::Sctp => 12,
        }
    }
}

/// A context descriptor: what the device must know of a packet's headers to insert a VLAN tag
/// or checksums, or to segment it.
///
/// Lengths are in bytes. What does not fit its field is cut to the field's bits; the bounds are
/// in [`limits`](crate::limits).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Context {
    /// VLAN tag to insert, priority and DEI included, in host order.
    pub vlan: u16,
    /// MACLEN: Ethernet header, tags in the frame included; 14..=127 for an offload.
    pub mac_len: u8,
    /// IPLEN: IP header with options and extension headers; 20..=511 for an offload.
    pub ip_len: u16,
    /// Version of the IP header; `None` (with an `ip_len` of 0) if no offload needs it, as for a
    /// VLAN tag alone.
    pub ip: Option<IpVersion>,
    /// Transport protocol, for checksum and segmentation.
    pub l4: L4,
    /// L4LEN: transport header with options; for segmentation only.
    pub l4_len: u8,
    /// Payload bytes of a segment; for segmentation only.
    pub mss: u16,
    /// IDX: which of the queue's two contexts this sets. QEMU's model uses the lowest bit.
    pub queue_index: u8,
}

impl Context {
    /// The descriptor.
    #[inline]
    pub const fn encode(&self) -> Raw {
        let lo = (self.vlan as u64) << VLAN_SHIFT
            | (self.mac_len as u64 & MACLEN_MASK) << MACLEN_SHIFT
            | self.ip_len as u64 & IPLEN_MASK;
        let ipv4 = if matches!(self.ip, Some(IpVersion::V4)) {
            TUCMD_IPV4
        } else {
            0
        };
        let hi = (self.mss as u64) << MSS_SHIFT
            | (self.l4_len as u64) << L4LEN_SHIFT
            | ((self.queue_index & IDX_MASK) as u64) << IDX_SHIFT
            | DEXT
            | DTYP_CONTEXT
            | (self.l4 as u64) << TUCMD_L4T_SHIFT
            | ipv4;
        [lo, hi]
    }

    /// The inverse of [`encode`](Self::encode); `None` if this is no context descriptor or its
    /// L4 type is reserved.
    pub const fn decode(raw: Raw) -> Option<Self> {
        let [lo, hi] = raw;
        if hi & (DEXT | DTYP_MASK) != DEXT | DTYP_CONTEXT {
            return None;
        }
        let l4 = match (hi >> TUCMD_L4T_SHIFT) & 3 {
            0 => L4::Udp,
            1 => L4::Tcp,
            2 => L4::Sctp,
            _ => return None,
        };
        let ip_len = (lo & IPLEN_MASK) as u16;
        // The bit is clear for IPv6 and for no IP at all.
        let ip = if hi & TUCMD_IPV4 != 0 {
            Some(IpVersion::V4)
        } else if ip_len != 0 {
            Some(IpVersion::V6)
        } else {
            None
        };
        Some(Self {
            vlan: (lo >> VLAN_SHIFT) as u16,
            mac_len: ((lo >> MACLEN_SHIFT) & MACLEN_MASK) as u8,
            ip_len,
            ip,
            l4,
            l4_len: (hi >> L4LEN_SHIFT) as u8,
            mss: (hi >> MSS_SHIFT) as u16,
            queue_index: (hi >> IDX_SHIFT) as u8 & IDX_MASK,
        })
    }
}

/// A data descriptor: a piece of a packet in memory, and what to do with the packet.
///
/// The device takes the offloads from the packet's first descriptor; write them on all. It always
/// appends the frame check sequence.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Data {
    /// DMA address of the piece.
    pub address: u64,
    /// Bytes of the piece, at most [`MAX_TX_FRAGMENT`](crate::limits::MAX_TX_FRAGMENT).
    pub len: u16,
    /// PAYLEN: bytes of the whole packet in memory; for segmentation without the headers. At
    /// most [`MAX_PAYLEN`](crate::limits::MAX_PAYLEN).
    pub paylen: u32,
    /// EOP: the packet ends with this descriptor.
    pub end_of_packet: bool,
    /// RS: set DD in this descriptor when it is done. On the last descriptor of a packet.
    pub report_status: bool,
    /// TSE: segment the packet by the context's MSS.
    pub tso: bool,
    /// IXSM: insert the IPv4 header checksum.
    pub ip_checksum: bool,
    /// TXSM: insert the TCP, UDP or SCTP checksum.
    pub l4_checksum: bool,
    /// VLE: insert the context's VLAN tag.
    pub vlan: bool,
    /// MAC, its second bit (TSTAMP): latch the system time into TXSTMPL and TXSTMPH when the
    /// packet is transmitted.
    pub timestamp: bool,
    /// CC: use the context that `queue_index` names. The offloads above imply it; QEMU's model
    /// and the kernel's `igb` do without.
    pub context: bool,
    /// IDX: which of the queue's two contexts to use.
    pub queue_index: u8,
}

/// `bits` if `condition`.
#[inline]
const fn when(condition: bool, bits: u64) -> u64 {
    if condition {
        bits
    } else {
        0
    }
}

impl Data {
    /// The descriptor.
    #[inline]
    pub const fn encode(&self) -> Raw {
        // The shift cuts PAYLEN to its 18 bits, the topmost of the quadword.
        let hi = (self.paylen as u64) << PAYLEN_SHIFT
            | when(self.l4_checksum, TXSM)
            | when(self.ip_checksum, IXSM)
            | when(self.context, CC)
            | ((self.queue_index & IDX_MASK) as u64) << IDX_SHIFT
            | when(self.tso, TSE)
            | when(self.vlan, VLE)
            | when(self.timestamp, TIMESTAMP)
            | when(self.report_status, RS)
            | when(self.end_of_packet, EOP)
            | IFCS
            | DEXT
            | DTYP_DATA
            | self.len as u64;
        [self.address, hi]
    }

    /// The inverse of [`encode`](Self::encode); `None` if this is no data descriptor.
    pub const fn decode(raw: Raw) -> Option<Self> {
        let [address, hi] = raw;
        if hi & (DEXT | DTYP_MASK) != DEXT | DTYP_DATA {
            return None;
        }
        Some(Self {
            address,
            len: hi as u16,
            paylen: (hi >> PAYLEN_SHIFT) as u32,
            end_of_packet: hi & EOP != 0,
            report_status: hi & RS != 0,
            tso: hi & TSE != 0,
            ip_checksum: hi & IXSM != 0,
            l4_checksum: hi & TXSM != 0,
            vlan: hi & VLE != 0,
            timestamp: hi & TIMESTAMP != 0,
            context: hi & CC != 0,
            queue_index: (hi >> IDX_SHIFT) as u8 & IDX_MASK,
        })
    }
}
