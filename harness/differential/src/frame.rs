// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a frame says of itself.

/// What a next header says.
pub(crate) const HOP_BY_HOP: u8 = 0;
pub(crate) const TCP: u8 = 6;
pub(crate) const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
pub(crate) const SCTP: u8 = 132;

/// Whether it has a tag.
pub(crate) fn is_tagged(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x81, 0])
}

/// What follows the Ethernet header and the tag, with its type.
pub(crate) fn network(frame: &[u8]) -> (&[u8], &[u8]) {
    let at = if is_tagged(frame) { 16 } else { 12 };
    let rest = frame.get(at..).unwrap_or_default();
    rest.split_at(rest.len().min(2))
}

/// The protocol of an IPv4 packet, or the headers that an IPv6 header announces.
pub(crate) fn next_headers(frame: &[u8]) -> Vec<u8> {
    let packet = match network(frame) {
        ([0x86, 0xdd], packet) => packet,
        ([8, 0], packet) => return packet.get(9).copied().into_iter().collect(),
        _ => return Vec::new(),
    };
    let (mut next, mut at) = (packet.get(6).copied().unwrap_or(0), 40);
    let mut found = vec![next];
    while [HOP_BY_HOP, ROUTING, FRAGMENT, 60].contains(&next) {
        let Some(&[following, units]) = packet.get(at..at + 2).and_then(|two| two.first_chunk())
        else {
            break;
        };
        at += 8 + 8 * usize::from(if next == FRAGMENT { 0 } else { units });
        next = following;
        found.push(next);
    }
    found
}

/// Whether an IPv4 header has options.
pub(crate) fn has_options(frame: &[u8]) -> bool {
    let (kind, packet) = network(frame);
    kind == [8, 0] && packet.first().is_some_and(|first| first & 0xf > 5)
}

/// Whether a packet is longer than its frame.
pub(crate) fn is_cut(frame: &[u8]) -> bool {
    let (kind, packet) = network(frame);
    let (at, header) = match kind {
        [8, 0] => (2, 0),
        [0x86, 0xdd] => (4, 40),
        _ => return false,
    };
    let length = packet.get(at..at + 2).and_then(|two| two.first_chunk());
    length.is_some_and(|two| usize::from(u16::from_be_bytes(*two)) + header > packet.len())
}
