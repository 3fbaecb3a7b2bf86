// SPDX-License-Identifier: GPL-2.0 OR MIT

//! How a frame to send becomes descriptors: what its headers ask of the device, how long the
//! device must take it to be, and how its pieces are cut.
//!
//! The arithmetic only: where the bytes are in memory is the driver's affair. QEMU's model looks
//! at neither PAYLEN nor, for a checksum alone, at L4LEN; silicon does.

use crate::{
    limits::{
        MAX_IP_LEN,
        MAX_MAC_LEN,
        MAX_PAYLEN,
        MAX_TSO_HEADER,
        MAX_TX_FRAGMENT, //
    },
    tx::{
        Context,
        Data,
        IpVersion,
        L4, //
    },
};

/// Bytes of the longest TCP header.
pub const MAX_TCP_HEADER: u32 = 60;

/// Bytes of a UDP header.
pub const UDP_HEADER: u32 = L4::Udp.shortest_header() as u32;

/// Where the checksum is in a TCP and in a UDP header, in bytes.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;

/// The transport protocol whose header has its checksum `offset` bytes from its start; `None` if
/// the device does not know it.
#[inline]
pub const fn l4_by_checksum_offset(offset: u16) -> Option<L4> {
    match offset {
        TCP_CHECKSUM => Some(L4::Tcp),
        UDP_CHECKSUM => Some(L4::Udp),
        _ => None,
    }
}

/// The headers of a frame whose transport checksum the device must fill in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Where the IP header starts, in bytes from the start of the frame.
    pub network: u32,
    /// Where the transport header starts, in bytes from the start of the frame.
    pub transport: u32,
    /// Bytes of the transport header.
    pub l4_len: u32,
    /// Version of the IP header.
    pub ip: IpVersion,
    /// Transport protocol.
    pub l4: L4,
}

/// The segmentation of a frame.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Segmentation {
    /// Payload bytes of each segment but the last.
    pub mss: u16,
    /// Segments.
    pub segments: u16,
}

impl Headers {
    /// Bytes before the payload.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.transport.saturating_add(self.l4_len)
    }

    /// Whether there are no bytes before the payload.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the device can fill in the checksum: MACLEN and IPLEN can say where it is, and L4LEN is that
    /// of a header.
    #[inline]
    pub const fn can_checksum(&self) -> bool {
        self.network <= MAX_MAC_LEN as u32
            // An IPLEN of 0 would say that there is no IP header.
            && self.network < self.transport
            && self.transport - self.network <= MAX_IP_LEN as u32
            && self.l4_len >= self.l4.shortest_header() as u32
            && self.l4_len <= u8::MAX as u32
    }

    /// Whether the device can segment the frame, too: it keeps a copy of the headers. For UDP see
    /// [`udp_probe`](crate::udp_probe).
    #[inline]
    pub const fn can_segment(&self) -> bool {
        self.can_checksum()
            && self.len() <= MAX_TSO_HEADER as u32
            && matches!(self.l4, L4::Tcp | L4::Udp)
    }
}

/// Which of the queue's contexts (IDX) a frame uses. A stream's segments have one of their own, so
/// that its acknowledgements don't change it ([`Contexts`](crate::contexts::Contexts)).
#[inline]
const fn context_of(tso: bool) -> u8 {
    tso as u8
}

/// What the device does with a frame beside sending it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Offload {
    /// What goes before the frame's data descriptors.
    context: Option<Context>,
    /// Bytes of the headers that each segment repeats.
    header: u32,
    /// Packets on the wire.
    packets: u32,
    tso: bool,
    ip_checksum: bool,
    l4_checksum: bool,
    vlan: bool,
    timestamp: bool,
}

impl Offload {
    /// Nothing.
    pub const NONE: Self = Self {
        context: None,
        header: 0,
        packets: 1,
        tso: false,
        ip_checksum: false,
        l4_checksum: false,
        vlan: false,
        timestamp: false,
    };

    /// Fills in checksums, and segments; `None` if the device cannot
    /// ([`Headers::can_checksum`], [`Headers::can_segment`]).
    ///
    /// The IPv4 header's checksum is the device's affair only where it makes that header: in
    /// segments.
    #[inline]
    pub const fn new(headers: &Headers, segmentation: Option<Segmentation>) -> Option<Self> {
        if !headers.can_checksum() {
            return None;
        }
        let (tso, mss, packets) = match segmentation {
            Some(Segmentation { mss: 0, .. }) => return None,
            Some(_) if !headers.can_segment() => return None,
            Some(Segmentation { mss, segments: 0 }) => (true, mss, 1),
            Some(Segmentation { mss, segments }) => (true, mss, segments as u32),
            None => (false, 0, 1),
        };

        Some(Self {
            // CAST: `can_checksum` has seen that the lengths fit.
            context: Some(Context {
                vlan: 0,
                mac_len: headers.network as u8,
                ip_len: (headers.transport - headers.network) as u16,
                ip: Some(headers.ip),
                l4: headers.l4,
                l4_len: headers.l4_len as u8,
                mss,
                queue_index: context_of(tso),
            }),
            header: headers.len(),
            packets,
            tso,
            ip_checksum: tso && matches!(headers.ip, IpVersion::V4),
            l4_checksum: true,
            vlan: false,
            timestamp: false,
        })
    }

    /// Inserts a VLAN tag, too, into a frame with `mac_len` bytes before its network header; `None`
    /// if the device cannot. Needs CTRL.VME.
    #[inline]
    pub const fn with_vlan(self, tag: u16, mac_len: u32) -> Option<Self> {
        if mac_len > MAX_MAC_LEN as u32 {
            return None;
        }
        let context = match self.context {
            Some(context) => Context {
                vlan: tag,
                ..context
            },
            None => Context {
                vlan: tag,
                // CAST: Checked above.
                mac_len: mac_len as u8,
                ip_len: 0,
                ip: None,
                l4: L4::Udp,
                l4_len: 0,
                mss: 0,
                queue_index: context_of(false),
            },
        };

        Some(Self {
            context: Some(context),
            vlan: true,
            ..self
        })
    }

    /// Requests a timestamp of when the frame is transmitted, too.
    #[inline]
    pub const fn with_timestamp(self) -> Self {
        Self {
            timestamp: true,
            ..self
        }
    }

    /// Whether a timestamp is requested.
    #[inline]
    pub const fn wants_timestamp(&self) -> bool {
        self.timestamp
    }

    /// The context descriptor that the frame needs.
    #[inline]
    pub const fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// Whether the device segments.
    #[inline]
    pub const fn segments(&self) -> bool {
        self.tso
    }

    /// Whether the device fills in transport checksums.
    #[inline]
    pub const fn checksums(&self) -> bool {
        self.l4_checksum
    }

    /// Packets on the wire.
    #[inline]
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes on the wire, without preamble and frame check sequence, of a frame of `len` bytes in
    /// memory: each segment has its own copy of the headers.
    #[inline]
    pub const fn wire_len(&self, len: u32) -> u32 {
        len + (self.packets - 1) * self.header
    }

    /// PAYLEN of a frame of `len` bytes in memory; for a segmented frame it excludes the headers.
    /// `None` if the frame is shorter than its headers, or too long for PAYLEN.
    #[inline]
    pub const fn paylen(&self, len: u32) -> Option<u32> {
        let headers = if self.tso { self.header } else { 0 };
        if len < headers || len - headers > MAX_PAYLEN {
            return None;
        }
        Some(len - headers)
    }

    /// The data descriptor of a piece of a frame with this [`paylen`](Self::paylen).
    #[inline]
    pub const fn data(&self, piece: Piece, paylen: u32, last: bool) -> Data {
        Data {
            address: piece.address,
            len: piece.len,
            paylen,
            end_of_packet: last,
            report_status: last,
            tso: self.tso,
            ip_checksum: self.ip_checksum,
            l4_checksum: self.l4_checksum,
            vlan: self.vlan,
            timestamp: self.timestamp,
            context: false,
            queue_index: context_of(self.tso),
        }
    }
}

/// What one data descriptor takes of a buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// DMA address.
    pub address: u64,
    /// Bytes, at most [`MAX_TX_FRAGMENT`].
    pub len: u16,
}

/// A buffer, cut into what data descriptors take.
#[derive(Clone, Debug)]
pub struct Pieces {
    address: u64,
    left: u32,
}

impl Pieces {
    /// Cuts `len` bytes at a DMA address into [`count`](Self::count) pieces.
    #[inline]
    pub const fn new(address: u64, len: u32) -> Self {
        Self { address, left: len }
    }

    /// The pieces that `len` bytes are cut into.
    #[inline]
    pub const fn count(len: u32) -> u32 {
        len.div_ceil(MAX_TX_FRAGMENT)
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.left == 0 {
            return None;
        }
        let len = self.left.min(MAX_TX_FRAGMENT);
        let piece = Piece {
            address: self.address,
            // CAST: At most `MAX_TX_FRAGMENT`.
            len: len as u16,
        };

        self.address = self.address.wrapping_add(len.into());
        self.left -= len;
        Some(piece)
    }
}
