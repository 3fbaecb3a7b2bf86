// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What a driver must parse in a frame itself: its length without padding.
//!
//! Ethernet pads a frame to [`MIN_FRAME`](crate::limits::MIN_FRAME) bytes (IEEE 802.3, 4.2.3.3).
//! The device counts the padding as payload.

const VLAN_TAG_TYPES: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Bytes of both addresses, before the type.
const ADDRESSES: usize = 12;
const TYPE: usize = 2;
const VLAN_TAG: usize = 4;
/// Tags that are skipped, at most.
const MAX_TAGS: usize = 2;
/// Where IPv4's total length is (RFC 791), and IPv6's payload length (RFC 8200).
const IPV4_LENGTH: usize = 2;
const IPV6_LENGTH: usize = 4;
const IPV6_HEADER: u32 = 40;

/// Bytes at the start of a frame that [`unpadded_len`] looks at, at most.
pub const LOOKED_AT: usize =
    ADDRESSES + MAX_TAGS * VLAN_TAG + TYPE + IPV6_LENGTH + size_of::<u16>();

/// The length in bytes, by its IP header, of the frame that starts with `headers`.
///
/// `None` if it is not IP, or its header is not all there.
#[inline]
pub fn unpadded_len(headers: &[u8]) -> Option<u32> {
    let mut at = ADDRESSES;

    for _ in 0..MAX_TAGS {
        if VLAN_TAG_TYPES.contains(&word(headers, at)?) {
            at += VLAN_TAG;
        }
    }
    let ip = at + TYPE;

    let ip_len = match word(headers, at)? {
        IPV4 => u32::from(word(headers, ip + IPV4_LENGTH)?),
        IPV6 => IPV6_HEADER + u32::from(word(headers, ip + IPV6_LENGTH)?),
        _ => return None,
    };
    // CAST: At most 22.
    Some(ip as u32 + ip_len)
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}
