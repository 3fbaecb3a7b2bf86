// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Probes whether a device segments UDP: a datagram to segment, and the expected result.
//!
//! Silicon makes a UDP datagram of each segment. QEMU's model makes IP fragments of one datagram,
//! which a receiver reassembles. No register distinguishes the two, so a driver sends this datagram
//! in MAC loopback and checks the result.

use crate::{
    limits::DESCRIPTOR_SIZE,
    offload::{
        Headers,
        Offload,
        Piece,
        Segmentation,
        UDP_HEADER, //
    },
    tx::{
        IpVersion,
        Raw,
        L4, //
    },
};

/// Datagrams that must come of it.
pub const SEGMENTS: u16 = 2;

/// Payload bytes of each.
const MSS: u16 = 64;

const HEADERS: Headers = Headers {
    network: 14,
    transport: 34,
    l4_len: UDP_HEADER,
    ip: IpVersion::V4,
    l4: L4::Udp,
};

/// Bytes of the frame in memory.
const LEN: u32 = HEADERS.len() + (MSS * SEGMENTS) as u32;

/// Descriptors' worth of memory that the frame takes.
pub const SIZE: u32 = LEN.div_ceil(DESCRIPTOR_SIZE);

/// Bytes of a received frame that [`is_segment`] looks at.
pub const START: usize = 48;

/// Where frames in a loop inside the device are sent: a local address that nothing on the wire has, so
/// that a device that filters for it receives no other frame.
pub const DESTINATION: [u8; 6] = [0x02, 0x00, 0x00, 0x00, 0x00, 0x02];

/// The headers: to [`DESTINATION`] from another local address, 192.0.2.1 to 192.0.2.2, discard (RFC 863). As for
/// all segmentation, the lengths and the IP checksum are the device's affair, and the UDP checksum
/// is that of the pseudo-header without a length, not inverted.
const FRAME: [u8; START] = [
    0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08,
    0x00, // Ethernet
    0x45, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x40, 0x11, 0x00, 0x00, // IPv4
    0xc0, 0x00, 0x02, 0x01, 0xc0, 0x00, 0x02, 0x02, // addresses
    0x00, 0x09, 0x00, 0x09, 0x00, 0x88, 0x84, 0x15, // UDP
    0x6e, 0x6f, 0x62, 0x6f, 0x75, 0x6e, // payload; the rest of it is zero
];

/// The frame's bytes from `16 * index` on, as the two little-endian quadwords that they are.
pub fn words(index: u32) -> Raw {
    let start = (index as usize).saturating_mul(DESCRIPTOR_SIZE as usize);

    [word(&FRAME, start), word(&FRAME, start.saturating_add(8))]
}

/// Eight bytes; those that are not there are zero.
fn word(bytes: &[u8], start: usize) -> u64 {
    let mut word = [0; 8];

    for (to, from) in word.iter_mut().zip(bytes.iter().skip(start)) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

/// The descriptors for the frame at a DMA address. A context comes first; the last one reports its
/// completion.
pub fn descriptors(address: u64) -> Option<[Raw; 2]> {
    let segmentation = Segmentation {
        mss: MSS,
        segments: SEGMENTS,
    };
    let offload = Offload::new(&HEADERS, Some(segmentation))?;
    // CAST: Some 200 bytes.
    let piece = Piece {
        address,
        len: LEN as u16,
    };
    let data = offload.data(piece, offload.paylen(LEN)?, true);

    Some([offload.context()?.encode(), data.encode()])
}

/// Whether a received frame of `len` bytes that starts with `start` is a datagram of its own, with a
/// segment in it.
pub fn is_segment(start: &[u8; START], len: u32) -> bool {
    let at = |offset: u32| {
        let offset = offset as usize;
        let bytes = start.get(offset..)?.first_chunk()?;

        Some(u32::from(u16::from_be_bytes(*bytes)))
    };
    let (ip, udp) = (HEADERS.network, HEADERS.transport);
    let payload = u32::from(MSS);

    len == HEADERS.len() + payload
        && at(ip + 2) == Some(len - ip)
        // Neither a fragment nor followed by one; "don't fragment" may be set.
        && at(ip + 6).is_some_and(|fragment| fragment & 0x3fff == 0)
        && at(udp + 4) == Some(UDP_HEADER + payload)
}
