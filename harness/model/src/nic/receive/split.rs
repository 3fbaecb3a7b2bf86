// SPDX-License-Identifier: MIT OR Apache-2.0

//! Header split (82576 datasheet, chapter "Header Splitting and Replication", and appendix "Packet
//! Types"). Header replication is not modelled.

use i82576::{
    five_tuple::Protocol,
    regs::{self, RFCTL, psrtype, rfctl, srrctl::DescType},
};

use super::{
    packet::{Addresses, Ip, Packet, Transport},
    queue::header_buffer,
};
use crate::nic::registers::Registers;

/// SRRCTL.DESCTYPE.
const DESCTYPE_SHIFT: u32 = 25;
const DESCTYPE_MASK: u32 = 7;
/// The longest header that RDESC.HDR_LEN can tell.
const LONGEST: usize = 0x3ff;

const HEADER_SPLIT: u32 = DescType::HeaderSplit as u32;
const HEADER_SPLIT_ALWAYS: u32 = DescType::HeaderSplitAlways as u32;

/// Protocols whose header must be parsed for a packet to be split.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// How a packet is laid over its first descriptor's buffers, and what the descriptor says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes in the header buffer. What follows is in payload buffers.
    pub(crate) header: usize,
    /// SPH: where the headers end was found.
    pub(crate) sph: bool,
    /// HBO: they are longer than the header buffer.
    pub(crate) hbo: bool,
    pub(crate) hdr_len: u16,
}

/// The bytes of a packet's headers as they go to memory, if PSRTYPE of its queue has packets of its type
/// split.
///
/// NFS is a type of its own, and its headers end with those of RPC. These are not parsed, so no packet
/// with its port is split while RFCTL has the device look for it.
pub(crate) fn header_len(packet: &Packet, queue: u16, registers: &Registers) -> Option<u16> {
    let (outer, ip) = (packet.ip.as_ref()?, packet.innermost()?);
    if ip.fragment && registers.has(RFCTL, rfctl::IPFRSP_DIS) {
        return None;
    }
    let l4 = (packet.transport.as_ref()).filter(|transport| transport.protocol != Protocol::Sctp);
    if l4.is_some_and(|transport| transport.nfs) || l4.is_none() && is_damaged(ip) {
        return None;
    }
    let kind = kind(outer, packet.inner.is_some(), l4);
    let end = l4.map_or(ip.header_end, |transport| transport.header_end);
    let len = end.checked_sub(packet.stripped(registers))?;
    if !registers.has(regs::psrtype(queue), kind) || len > LONGEST {
        return None;
    }
    u16::try_from(len).ok()
}

/// Whether what should be TCP or UDP is not.
fn is_damaged(ip: &Ip) -> bool {
    !ip.fragment && matches!(ip.protocol, Some(TCP | UDP))
}

/// The packet's bit of PSRTYPE.
fn kind(outer: &Ip, is_tunnel: bool, l4: Option<&Transport>) -> u32 {
    let [ip, tcp, udp] = match (&outer.addresses, is_tunnel) {
        (Addresses::V4 { .. }, false) => [psrtype::IPV4, psrtype::IPV4_TCP, psrtype::IPV4_UDP],
        (Addresses::V4 { .. }, true) => [
            psrtype::IPV4_IPV6,
            psrtype::IPV4_IPV6_TCP,
            psrtype::IPV4_IPV6_UDP,
        ],
        (Addresses::V6 { .. }, _) => [psrtype::IPV6, psrtype::IPV6_TCP, psrtype::IPV6_UDP],
    };
    match l4.map(|transport| transport.protocol) {
        Some(Protocol::Tcp) => tcp,
        Some(Protocol::Udp) => udp,
        Some(Protocol::Sctp) | None => ip,
    }
}

/// Whether descriptors have header buffers.
pub(crate) fn has_header_buffer(srrctl: u32) -> bool {
    matches!(
        srrctl >> DESCTYPE_SHIFT & DESCTYPE_MASK,
        HEADER_SPLIT | HEADER_SPLIT_ALWAYS
    )
}

/// How a packet with headers of that length, or that can't be split, is laid over buffers.
///
/// For one that can't be split the datasheet has HDR_LEN undefined with DESCTYPE 2. It is the header
/// buffer's size then, as in QEMU's model.
pub(crate) fn layout(header_len: Option<u16>, packet_len: usize, srrctl: u32) -> Layout {
    let buffer = header_buffer(srrctl);
    let always = match srrctl >> DESCTYPE_SHIFT & DESCTYPE_MASK {
        HEADER_SPLIT => false,
        HEADER_SPLIT_ALWAYS => true,
        _ => {
            return Layout {
                header: 0,
                sph: false,
                hbo: false,
                hdr_len: 0,
            };
        }
    };
    if always && packet_len <= buffer {
        return Layout {
            header: packet_len,
            sph: false,
            hbo: false,
            hdr_len: field(packet_len),
        };
    }
    let unsplit = if always { buffer } else { 0 };
    match header_len {
        Some(len) if usize::from(len) <= buffer => Layout {
            header: usize::from(len).min(packet_len),
            sph: true,
            hbo: false,
            hdr_len: len,
        },
        Some(len) => Layout {
            header: unsplit,
            sph: true,
            hbo: true,
            hdr_len: len,
        },
        None => Layout {
            header: unsplit,
            sph: false,
            hbo: false,
            hdr_len: field(buffer),
        },
    }
}

/// HDR_LEN of what may be longer than the field can tell: at most 63 units of 64 bytes.
fn field(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size of a header buffer, by every length of headers and by packets that end about there.
    #[test]
    fn no_header_is_longer_than_its_buffer() {
        for units in 0..64 {
            let buffer = units * 64;
            for (kind, len) in (0..8).flat_map(|kind| (0..=LONGEST).map(move |len| (kind, len))) {
                let control = (units as u32) << 8 | kind << DESCTYPE_SHIFT;
                let about = |at: usize| at.saturating_sub(1)..=at + 1;
                for packet in about(len).chain(about(buffer)).chain(about(9728)) {
                    for header in [None, Some(len as u16)] {
                        let layout = layout(header, packet, control);
                        assert!(
                            layout.header <= buffer.min(packet),
                            "{layout:?} of {packet}"
                        );
                        let is_split = layout.sph && !layout.hbo;
                        assert!(!is_split || usize::from(layout.hdr_len) <= buffer);
                        assert!(!layout.hbo || layout.sph);
                    }
                }
            }
        }
    }
}
