// SPDX-License-Identifier: MIT OR Apache-2.0

//! Segmentation: of TCP, and of UDP into datagrams (82576 datasheet, chapter "Transmit Packet
//! Segmentation").

use i82576::{
    limits::MAX_TSO_HEADER,
    tx::{Context, Data, IpVersion, L4},
};

use super::offload::Headers;
use crate::nic::{checksum::fold, violation::What};

/// Where the device writes in an IPv4 header: total length, identification.
const IPV4_LENGTH: usize = 2;
const IPV4_ID: usize = 4;
/// And in an IPv6 header: payload length, which does not count the header.
const IPV6_HEADER: usize = 40;
const IPV6_LENGTH: usize = 4;
/// And in those of TCP and UDP: sequence number, flags, length; and where their checksums are.
const TCP_SEQUENCE: usize = 4;
const TCP_FLAGS: usize = 13;
const TCP_CHECKSUM: usize = 16;
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;

/// Flags of TCP that only the last segment has, and that only the first one has.
const FIN_PSH: u8 = 1 << 0 | 1 << 3;
const CWR: u8 = 1 << 7;

/// The segments of a packet, with the checksums still to be filled in.
///
/// # Errors
///
/// [`What::Offload`] if the context does not fit the packet.
pub(super) fn segments(
    packet: &[u8],
    data: &Data,
    context: &Context,
    headers: &Headers,
) -> Result<Vec<Vec<u8>>, What> {
    let len = headers.l4 + usize::from(context.l4_len);
    let (header, payload) = packet.split_at_checked(len).ok_or(What::Offload)?;
    if headers.protocol == L4::Sctp {
        return Err(What::Offload);
    }
    // With TSE, TXSM must be set, and IXSM for IPv4 and for nothing else (POPTS).
    let fits = data.l4_checksum
        && data.ip_checksum == (headers.version == IpVersion::V4)
        && len <= usize::from(MAX_TSO_HEADER)
        && context.l4_len >= headers.protocol.shortest_header()
        && context.mss != 0
        && !payload.is_empty()
        && data.paylen as usize == payload.len();
    if !fits {
        return Err(What::Offload);
    }
    let pieces = payload.chunks(usize::from(context.mss));
    let last = pieces.len().saturating_sub(1);
    let mut segments = Vec::with_capacity(pieces.len());
    for (nth, piece) in pieces.enumerate() {
        let mut segment = [header, piece].concat();
        let place = Place {
            nth,
            offset: nth * usize::from(context.mss),
            is_last: nth == last,
        };
        write_headers(&mut segment, headers, place).ok_or(What::Offload)?;
        segments.push(segment);
    }
    Ok(segments)
}

/// Which segment of a packet it is.
#[derive(Clone, Copy)]
struct Place {
    nth: usize,
    /// Where its payload is in the packet's.
    offset: usize,
    is_last: bool,
}

fn write_headers(segment: &mut [u8], headers: &Headers, place: Place) -> Option<()> {
    let (to_ip, l4_bytes) = segment.split_at_mut_checked(headers.l4)?;
    let ip = to_ip.get_mut(headers.ip..)?;
    let l4_len = u16::try_from(l4_bytes.len()).ok()?;
    let behind_ip = |header: usize| u16::try_from(l4_bytes.len() + header).ok();
    match headers.version {
        IpVersion::V4 => {
            put(ip, IPV4_LENGTH, behind_ip(ip.len())?)?;
            let id = word(ip, IPV4_ID)?.wrapping_add(place.nth as u16);
            put(ip, IPV4_ID, id)?;
        }
        IpVersion::V6 => put(ip, IPV6_LENGTH, behind_ip(ip.len() - IPV6_HEADER)?)?,
    }
    let checksum = match headers.protocol {
        L4::Tcp => {
            let sequence = l4_bytes.get_mut(TCP_SEQUENCE..)?.first_chunk_mut::<4>()?;
            let first = u32::from_be_bytes(*sequence);
            *sequence = first.wrapping_add(place.offset as u32).to_be_bytes();
            let flags = l4_bytes.get_mut(TCP_FLAGS)?;
            if !place.is_last {
                *flags &= !FIN_PSH;
            }
            if place.nth != 0 {
                *flags &= !CWR;
            }
            TCP_CHECKSUM
        }
        _ => {
            put(l4_bytes, UDP_LENGTH, l4_len)?;
            UDP_CHECKSUM
        }
    };
    // What the pseudo header's sum lacks.
    let seed = u64::from(word(l4_bytes, checksum)?);
    put(l4_bytes, checksum, fold(seed + u64::from(l4_len)))
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut()? = value.to_be_bytes();
    Some(())
}
