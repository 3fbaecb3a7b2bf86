// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Advanced receive descriptors (82576 datasheet, chapter "Inline Functions", receive).
//!
//! The driver writes the read format, two addresses. The device writes the result of a reception
//! over it:
//!
//! ```text
//!        63      48 47      32 31 30    21 20   16 15        4 3        0
//! lo    |      RSS hash       |SPH|HDR_LEN|       |packet type| RSS type |
//! hi    | VLAN tag | PKT_LEN  |        errors and status                 |
//! ```
//!
//! A packet that spans several descriptors is described in parts: each descriptor has its own
//! PKT_LEN; the split (SPH, HDR_LEN, HBO) counts on the first descriptor only, although the device
//! may repeat it; hash, types, checksums, VLAN tag and errors count on the last one only.

/// A descriptor: the host-order values of its two little-endian quadwords.
pub type Raw = [u64; 2];

/// The read format: a payload and a header buffer for the device to fill.
///
/// Both are DMA addresses. The header buffer's must be even: its bit 0 is where the device
/// reports DD, so it is written as 0. With
/// [`DescType::OneBuffer`](crate::regs::srrctl::DescType::OneBuffer) the header address is not
/// used; give 0.
#[inline]
pub const fn rx_read(payload: u64, header: u64) -> Raw {
    [payload, header & !DD]
}

/// Whether the device is done with a descriptor, by its second quadword. All other fields must be
/// read after this one.
#[inline]
pub const fn is_done(hi: u64) -> bool {
    hi & DD != 0
}

// Status, bits of the second quadword.
const DD: u64 = 1 << 0;
const EOP: u64 = 1 << 1;
const IXSM: u64 = 1 << 2;
const VP: u64 = 1 << 3;
const UDPCS: u64 = 1 << 4;
const L4CS: u64 = 1 << 5;
const IPCS: u64 = 1 << 6;
const TS: u64 = 1 << 16;
// Errors, bits of the second quadword.
const HBO: u64 = 1 << 23;
const CE: u64 = 1 << 24;
const SE: u64 = 1 << 25;
const SEQ: u64 = 1 << 26;
const CXE: u64 = 1 << 28;
const L4E: u64 = 1 << 29;
const IPE: u64 = 1 << 30;
const RXE: u64 = 1 << 31;
// Split header, bit of the first quadword.
const SPH: u64 = 1 << 31;

/// The fields over which the device computed the RSS hash.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RssType {
    /// No hash.
    None = 0,
    /// IPv4 addresses and TCP ports.
    Ipv4Tcp = 1,
    /// IPv4 addresses.
    Ipv4 = 2,
    /// IPv6 addresses and TCP ports.
    Ipv6Tcp = 3,
    /// IPv6 addresses, from extension headers if there are any.
    Ipv6Ex = 4,
    /// IPv6 addresses.
    Ipv6 = 5,
    /// IPv6 addresses, from extension headers if there are any, and TCP ports.
    Ipv6TcpEx = 6,
    /// IPv4 addresses and UDP ports.
    Ipv4Udp = 7,
    /// IPv6 addresses and UDP ports.
    Ipv6Udp = 8,
    /// IPv6 addresses, from extension headers if there are any, and UDP ports.
    Ipv6UdpEx = 9,
    /// A value that the datasheet reserves.
    Reserved = 15,
}

impl RssType {
    /// Whether there is a hash.
    #[inline]
    pub const fn is_hashed(self) -> bool {
        !matches!(self, Self::None | Self::Reserved)
    }

    /// Whether the hash covers ports: the kernel's `PKT_HASH_TYPE_L4` as opposed to `_L3`.
    #[inline]
    pub const fn has_ports(self) -> bool {
        matches!(
            self,
            Self::Ipv4Tcp
                | Self::Ipv6Tcp
                | Self::Ipv6TcpEx
                | Self::Ipv4Udp
                | Self::Ipv6Udp
                | Self::Ipv6UdpEx
        )
    }
}

/// The headers that the device recognised.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PacketType(u16);

impl PacketType {
    const ETQF: u16 = 1 << 11;

    /// `bit`, if the field is a set of headers and not the number of an EtherType filter.
    #[inline]
    const fn has(self, bit: u16) -> bool {
        self.0 & Self::ETQF == 0 && self.0 & bit != 0
    }

    /// The field as the device wrote it, 12 bits.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// An IPv4 header, with or without options.
    #[inline]
    pub const fn ipv4(self) -> bool {
        self.has(1 << 0 | 1 << 1)
    }

    /// An IPv4 header with options.
    #[inline]
    pub const fn ipv4_options(self) -> bool {
        self.has(1 << 1)
    }

    /// An IPv6 header, with or without extension headers.
    #[inline]
    pub const fn ipv6(self) -> bool {
        self.has(1 << 2 | 1 << 3)
    }

    /// An IPv6 header with extension headers.
    #[inline]
    pub const fn ipv6_extensions(self) -> bool {
        self.has(1 << 3)
    }

    /// A TCP header.
    #[inline]
    pub const fn tcp(self) -> bool {
        self.has(1 << 4)
    }

    /// A UDP header.
    #[inline]
    pub const fn udp(self) -> bool {
        self.has(1 << 5)
    }

    /// An SCTP header.
    #[inline]
    pub const fn sctp(self) -> bool {
        self.has(1 << 6)
    }

    /// An NFS header.
    #[inline]
    pub const fn nfs(self) -> bool {
        self.has(1 << 7)
    }

    /// The number of the EtherType filter that the packet matched, in place of all the above.
    #[inline]
    pub const fn ethertype_filter(self) -> Option<u8> {
        if self.0 & Self::ETQF != 0 {
            Some((self.0 & 7) as u8)
        } else {
            None
        }
    }
}

/// Where the first descriptor of a packet left its bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Layout {
    /// The headers are in the header buffer, what follows them in the payload buffer.
    Split {
        /// Bytes in the header buffer.
        header: u16,
        /// Bytes in the payload buffer. 0 for a packet of headers only, such as a TCP
        /// acknowledgement of 60 bytes or more; a shorter one has its Ethernet padding here.
        payload: u16,
    },
    /// The packet was not split and is in the payload buffer.
    Unsplit {
        /// Bytes in the payload buffer.
        len: u16,
    },
    /// The headers are longer than the header buffer; the packet is in the payload buffer.
    HeaderOverflow {
        /// Bytes in the payload buffer.
        len: u16,
    },
    /// The whole packet, payload included, is in the header buffer. Only
    /// [`DescType::HeaderSplitAlways`](crate::regs::srrctl::DescType::HeaderSplitAlways).
    HeaderOnly {
        /// Bytes in the header buffer.
        header: u16,
    },
}

/// The device's verdict on a packet's checksums.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// Nothing was checked, or not all of it.
    None,
    /// The TCP, UDP or SCTP checksum is right, and so is the IPv4 header's if there is one.
    Verified,
    /// A checksum is wrong.
    Bad,
}

/// A descriptor as the device wrote it back.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WriteBack {
    lo: u64,
    hi: u64,
}

impl WriteBack {
    /// From the two quadwords. `hi` must have been read before `lo`, and
    /// [`done`](Self::done) be true, for the rest to mean anything.
    #[inline]
    pub const fn from_raw(lo: u64, hi: u64) -> Self {
        Self { lo, hi }
    }

    /// The fields the RSS hash covers. Last descriptor.
    #[inline]
    pub const fn rss_type(&self) -> RssType {
        match self.lo & 0xf {
            0 => RssType::None,
            1 => RssType::Ipv4Tcp,
            2 => RssType::Ipv4,
            3 => RssType::Ipv6Tcp,
            4 => RssType::Ipv6Ex,
            5 => RssType::Ipv6,
            6 => RssType::Ipv6TcpEx,
            7 => RssType::Ipv4Udp,
            8 => RssType::Ipv6Udp,
            9 => RssType::Ipv6UdpEx,
            _ => RssType::Reserved,
        }
    }

    /// The headers recognised. Last descriptor.
    #[inline]
    pub const fn packet_type(&self) -> PacketType {
        PacketType((self.lo >> 4) as u16 & 0xfff)
    }

    /// HDR_LEN: bytes of the headers. Means what [`layout`](Self::layout) makes of it.
    #[inline]
    pub const fn header_len(&self) -> u16 {
        (self.lo >> 21) as u16 & 0x3ff
    }

    /// SPH: the device found where the headers end. First descriptor.
    #[inline]
    pub const fn split_header(&self) -> bool {
        self.lo & SPH != 0
    }

    /// The RSS hash; needs RXCSUM.PCSD, and an [`rss_type`](Self::rss_type) other than none.
    /// Last descriptor.
    #[inline]
    pub const fn rss_hash(&self) -> u32 {
        (self.lo >> 32) as u32
    }

    /// DD: the device is done with the descriptor.
    #[inline]
    pub const fn done(&self) -> bool {
        is_done(self.hi)
    }

    /// EOP: this is the packet's last descriptor.
    #[inline]
    pub const fn end_of_packet(&self) -> bool {
        self.hi & EOP != 0
    }

    /// IPCS: the IPv4 header checksum was checked. Last descriptor.
    #[inline]
    pub const fn ip_checksum_checked(&self) -> bool {
        self.hi & (IPCS | IXSM) == IPCS
    }

    /// L4CS or UDPCS: the TCP, UDP or SCTP checksum was checked. Last descriptor.
    #[inline]
    pub const fn l4_checksum_checked(&self) -> bool {
        self.hi & (L4CS | UDPCS) != 0 && self.hi & IXSM == 0
    }

    /// IPE: the IPv4 header checksum is wrong, if it was checked. Last descriptor.
    #[inline]
    pub const fn ip_checksum_error(&self) -> bool {
        self.hi & IPE != 0
    }

    /// L4E: the TCP, UDP or SCTP checksum is wrong, if it was checked. Last descriptor.
    #[inline]
    pub const fn l4_checksum_error(&self) -> bool {
        self.hi & L4E != 0
    }

    /// The frame was damaged on the way: CRC, symbol, sequence, carrier extension or data error.
    /// Only RCTL.SBP lets such a frame through, but for a parity error of the packet buffer.
    /// Last descriptor.
    #[inline]
    pub const fn frame_error(&self) -> bool {
        self.hi & (CE | SE | SEQ | CXE | RXE) != 0
    }

    /// HBO: the headers are longer than the header buffer. Only with
    /// [`split_header`](Self::split_header). First descriptor.
    #[inline]
    pub const fn header_buffer_overflow(&self) -> bool {
        self.hi & HBO != 0
    }

    /// TS: RXSTMPL and RXSTMPH have the packet's timestamp. Last descriptor.
    #[inline]
    pub const fn has_timestamp(&self) -> bool {
        self.hi & TS != 0
    }

    /// VP: a VLAN tag was stripped into the descriptor. Last descriptor.
    #[inline]
    pub const fn vlan_packet(&self) -> bool {
        self.hi & VP != 0
    }

    /// The VLAN tag that was stripped, priority and DEI included, in host order. Last descriptor.
    #[inline]
    pub const fn vlan_tag(&self) -> u16 {
        (self.hi >> 48) as u16
    }

    /// PKT_LEN: bytes in this descriptor's payload buffer. Every descriptor.
    #[inline]
    pub const fn packet_len(&self) -> u16 {
        (self.hi >> 32) as u16
    }

    /// Where the first descriptor of a packet left its bytes. Descriptors after the first have
    /// [`packet_len`](Self::packet_len) bytes in their payload buffers and nothing in their
    /// header buffers, regardless of their other fields.
    ///
    /// The answer is complete for
    /// [`DescType::OneBuffer`](crate::regs::srrctl::DescType::OneBuffer) and
    /// [`DescType::HeaderSplit`](crate::regs::srrctl::DescType::HeaderSplit) (DESCTYPE 1 and 2):
    ///
    /// | packet                       | SPH | HBO | layout                       |
    /// |------------------------------|-----|-----|------------------------------|
    /// | headers fit                  | 1   | 0   | [`Layout::Split`]            |
    /// | headers longer than buffer   | 1   | 1   | [`Layout::HeaderOverflow`]   |
    /// | cannot be split              | 0   | any | [`Layout::Unsplit`]          |
    ///
    /// HBO and HDR_LEN are meaningless while SPH is clear: the model sets HDR_LEN to the size of the
    /// header buffer for packets that it cannot split.
    ///
    /// [`DescType::HeaderSplitAlways`](crate::regs::srrctl::DescType::HeaderSplitAlways)
    /// (DESCTYPE 5) starts every packet in the header buffer. One that fits there as a whole has
    /// SPH clear and PKT_LEN 0, and is [`Layout::HeaderOnly`]: its payload is linear, even if it must
    /// not be. A longer one that overflows or cannot be split fills the header buffer and continues
    /// in the payload buffer, and its descriptor is identical to the one that DESCTYPE 2 writes for a
    /// packet in the payload buffer alone; this function can't distinguish them. Use DESCTYPE 2 for queues whose payload must stay in its buffers.
    #[inline]
    pub const fn layout(&self) -> Layout {
        let len = self.packet_len();
        let header = self.header_len();
        if self.split_header() {
            if self.header_buffer_overflow() {
                Layout::HeaderOverflow { len }
            } else {
                Layout::Split {
                    header,
                    payload: len,
                }
            }
        } else if len == 0 && header != 0 {
            Layout::HeaderOnly { header }
        } else {
            Layout::Unsplit { len }
        }
    }

    /// The checksum verdict in the packet's last descriptor; any other has
    /// [`Checksum::None`].
    ///
    /// `Verified` takes a checked L4 checksum and no error. A wrong checksum in a fragment or in
    /// a header the device does not parse goes unseen, and is `None`. Short SCTP packets may be
    /// `Bad` by an erratum, so leave a `Bad` packet to the network stack rather than drop it.
    #[inline]
    pub const fn checksum(&self) -> Checksum {
        if !self.end_of_packet() {
            return Checksum::None;
        }
        // The usual case, and the shortest way to tell.
        if self.hi & (IPE | L4E) == 0 {
            return if self.l4_checksum_checked() {
                Checksum::Verified
            } else {
                Checksum::None
            };
        }
        let bad_ip = self.ip_checksum_checked() && self.ip_checksum_error();
        let bad_l4 = self.l4_checksum_checked() && self.l4_checksum_error();
        if bad_ip || bad_l4 {
            Checksum::Bad
        } else if self.l4_checksum_checked() && !self.ip_checksum_error() {
            Checksum::Verified
        } else {
            Checksum::None
        }
    }
}
