// SPDX-License-Identifier: MIT OR Apache-2.0

//! The differences that are known. Each takes out of what both did exactly what differs for its reason, so
//! that any other difference is seen. Documentation/models.md has the same list.

mod rings;

use i82576::regs::{ctrl, mrqc, psrtype, rxcsum};

pub use self::rings::{Done, received_on, sent_chain};

use crate::{
    Hex,
    frame::{
        FRAGMENT, HOP_BY_HOP, ROUTING, SCTP, TCP, has_options, is_cut, is_tagged, network,
        next_headers,
    },
    place,
    receive::{Received, Settings},
    ring::{Chain, Ring},
    transmit::{Packet, Sent},
};

/// What differs and what decides who is right.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// What differs.
    pub what: &'static str,
    /// Whose behaviour is not the hardware's, and what decides.
    pub decides: &'static str,
    /// Takes it out.
    pub mask: Mask,
}

/// Takes a difference out of what ours and QEMU's did, in this order.
#[derive(Debug, Clone, Copy)]
pub enum Mask {
    /// Of reception, by the settings and the frame.
    Receive(fn(&Settings, &[u8], &mut Received, &mut Received)),
    /// Of transmission, by the packet.
    Transmit(fn(&Packet, &mut Sent, &mut Sent)),
    /// Of either, by a ring that no driver may set up.
    Ring(fn(&Ring, &mut dyn Done, &mut dyn Done)),
    /// Of transmission, by descriptors that no driver may write.
    Chain(fn(&Chain, &mut Sent, &mut Sent)),
}

/// All of them, but for those of rings that no driver may set up.
pub const KNOWN: &[Known] = &[
    Known {
        what: "RSS without RXCSUM.PCSD",
        decides: "QEMU's model hashes only with PCSD; the datasheet's \"RSS\" wants it for the report alone",
        mask: Mask::Receive(|settings, _, ours, theirs| {
            if settings.mrqc & mrqc::ENABLE_RSS != 0 && settings.rxcsum & rxcsum::PCSD == 0 {
                misplace(ours);
                misplace(theirs);
            }
        }),
    },
    Known {
        what: "PSRTYPE",
        decides: "QEMU's model ignores it and splits all that it can; the datasheet's \"PSRTYPE\" decides",
        mask: Mask::Receive(|settings, _, ours, theirs| {
            let queue = theirs.descriptors.first().map_or(0, |(queue, _)| *queue);
            let types = settings.psrtype[usize::from(queue) % settings.psrtype.len()];
            if types != ALL_TYPES && headers(ours) < headers(theirs) {
                join(ours);
                join(theirs);
            }
        }),
    },
    Known {
        what: "packet checksum",
        decides: "QEMU's model reports none without RXCSUM.PCSD; the datasheet's \"Packet Checksum\" decides",
        mask: Mask::Receive(|settings, _, ours, theirs| {
            if settings.rxcsum & rxcsum::PCSD == 0 {
                each(ours, theirs, |[low, _]| *low &= u64::MAX >> 16);
            }
        }),
    },
    Known {
        what: "IPIDV",
        decides: "QEMU's model sets the 82574's bit with an IPv4 identification, ours never; Linux's igb, which has no such bit, decides",
        mask: Mask::Receive(|settings, _, _, theirs| {
            if settings.rxcsum & rxcsum::PCSD == 0 {
                for (_, descriptor) in &mut theirs.descriptors {
                    descriptor.raw[1] &= !IPIDV;
                }
            }
        }),
    },
    Known {
        what: "packet type with IPv6 extension headers",
        decides: "QEMU's model says IPv6 with extensions without IPv6; DPDK's table of packet types for these NICs has both",
        mask: Mask::Receive(|_, _, ours, theirs| {
            for ((_, mine), (_, other)) in ours.descriptors.iter_mut().zip(&theirs.descriptors) {
                if other.raw[0] & (TYPE_IPV6 | TYPE_IPV6_EXTENSIONS) == TYPE_IPV6_EXTENSIONS {
                    mine.raw[0] &= !TYPE_IPV6;
                }
            }
        }),
    },
    Known {
        what: "packet type with IPv4 options",
        decides: "QEMU's model says IPv4 without options; the datasheet's \"Packet Type\" decides",
        mask: Mask::Receive(|_, frame, ours, _| {
            if has_options(frame) {
                for (_, descriptor) in &mut ours.descriptors {
                    descriptor.raw[0] &= !TYPE_IPV4_OPTIONS;
                }
            }
        }),
    },
    Known {
        what: "octets of a frame whose tag is stripped",
        decides: "QEMU's model counts without the tag; the datasheet's \"GORCL\" counts what was on the wire",
        mask: Mask::Receive(|settings, frame, _, theirs| {
            let is_stripped = settings.ctrl & ctrl::VME != 0 && is_tagged(frame);
            if is_stripped && theirs.counters[GPRC] == 1 {
                theirs.counters[GORCL] += 4;
            }
        }),
    },
    Known {
        what: "counters of frames that are too long",
        decides: "QEMU's model drops them uncounted; the datasheet's \"ROC\" and \"RLEC\" decide",
        mask: Mask::Receive(|settings, frame, ours, theirs| {
            let is_long = frame.len() + CHECK_SEQUENCE > settings.rlpml.min(LONGEST) as usize;
            if is_long && ours.descriptors.is_empty() && theirs.descriptors.is_empty() {
                (ours.counters[ROC], ours.counters[RLEC]) = (0, 0);
            }
        }),
    },
    Known {
        what: "frames for which a queue has no descriptor",
        decides: "QEMU's model does not count them; the datasheet's \"RQDPC\" does",
        mask: Mask::Receive(|_, _, ours, theirs| {
            if ours.descriptors.is_empty() && theirs.descriptors.is_empty() {
                ours.dropped.fill(0);
            }
        }),
    },
    Known {
        what: "fragments over IPv6",
        decides: "QEMU's model takes what follows the fragment header, too; the 82575's manual, Table 31, ends the headers there",
        mask: Mask::Receive(|_, frame, ours, theirs| {
            if next_headers(frame).contains(&FRAGMENT) {
                unparse(ours, theirs);
            }
        }),
    },
    Known {
        what: "packets that are cut short",
        decides: "QEMU's model takes headers of packets that are longer than their frame, ours doesn't split them; no source says: ours splits only what is whole",
        mask: Mask::Receive(|settings, frame, ours, theirs| {
            if is_cut(frame) {
                unparse(ours, theirs);
            }
            if is_cut(frame) && settings.mrqc & mrqc::ENABLE_RSS != 0 {
                misplace(ours);
                misplace(theirs);
            }
        }),
    },
    Known {
        what: "SCTP without RXCSUM.CRCOFL",
        decides: "QEMU's model checks its CRC with TUOFL; the datasheet's \"RXCSUM\" decides",
        mask: Mask::Receive(|settings, frame, ours, theirs| {
            if next_headers(frame).contains(&SCTP) && settings.rxcsum & rxcsum::CRCOFL == 0 {
                each(ours, theirs, |[_, high]| *high &= !L4_CHECKED);
            }
        }),
    },
    Known {
        what: "checksums behind a routing header",
        decides: "QEMU's model takes the header's destination for the last; RFC 8200, 8.1, decides",
        mask: Mask::Receive(|_, frame, ours, theirs| {
            if next_headers(frame).contains(&ROUTING) {
                each(ours, theirs, |[_, high]| *high &= !L4_CHECKED);
            }
        }),
    },
    Known {
        what: "hop-by-hop options that come late",
        decides: "QEMU's model goes on behind them; RFC 8200, 4.1, has them first alone",
        mask: Mask::Receive(|_, frame, ours, theirs| {
            if next_headers(frame)
                .iter()
                .skip(1)
                .any(|kind| *kind == HOP_BY_HOP)
            {
                unparse(ours, theirs);
            }
        }),
    },
    Known {
        what: "hash over IPv6",
        decides: "QEMU's model hashes TCP by RSS_FIELD_IPV6_TCP_EX, and other packets with extension headers; \
                  the datasheet's \"RSS\" decides",
        mask: Mask::Receive(|settings, frame, ours, theirs| {
            let headers = next_headers(frame);
            let is_hashed = settings.mrqc & mrqc::ENABLE_RSS != 0;
            let is_v6 = network(frame).0 == [0x86, 0xdd];
            if is_hashed && is_v6 && (headers.len() > 1 || headers.contains(&TCP)) {
                misplace(ours);
                misplace(theirs);
            }
        }),
    },
    Known {
        what: "PSH of the last segment",
        decides: "QEMU's model clears it there as in the others; the datasheet's \"TCP Segmentation\" decides",
        mask: Mask::Transmit(|packet, ours, theirs| {
            let last = (ours.frames.last(), theirs.frames.last_mut());
            if let (true, (Some(mine), Some(other))) = (packet.data.tso, last) {
                push(packet, &mine.0, &mut other.0);
            }
        }),
    },
    Known {
        what: "padding of short frames",
        decides: "QEMU's model pads none; the datasheet's \"TCTL.PSP\" decides",
        mask: Mask::Transmit(|_, _, theirs| {
            for Hex(frame) in &mut theirs.frames {
                let missing = usize::from(MIN_FRAME).saturating_sub(frame.len());
                frame.resize(frame.len() + missing, 0);
                // CAST: It is less than 60.
                theirs.counters[GOTCL] += missing as u32;
            }
        }),
    },
    Known {
        what: "counters of segments",
        decides: "QEMU's model counts what is segmented as one packet; the datasheet's \"GPTC\" decides",
        mask: Mask::Transmit(|packet, _, theirs| {
            if packet.data.tso && theirs.counters[GPTC] == 1 {
                // CAST: There are few, and they are short.
                let count = theirs.frames.len() as u32;
                let octets = theirs
                    .frames
                    .iter()
                    .map(|Hex(frame)| frame.len() as u32 + 4);
                theirs.counters = [count, octets.sum(), 0, count, 0, 0];
            }
        }),
    },
];

/// PSRTYPE: what is split in tests that want all to be.
pub const ALL_TYPES: u32 = psrtype::IPV4
    | psrtype::IPV4_TCP
    | psrtype::IPV4_UDP
    | psrtype::IPV6
    | psrtype::IPV6_TCP
    | psrtype::IPV6_UDP;

/// Bits of a descriptor.
const IPIDV: u64 = 1 << 9;
const HBO: u64 = 1 << 23;
const TYPE_IPV6: u64 = 1 << 6;
const TYPE_IPV6_EXTENSIONS: u64 = 1 << 7;
/// HDR_LEN, SPH, and both.
const HEADER_LENGTH: u64 = 0x3ff;
const HEADER_LENGTH_SHIFT: u32 = 21;
const SPH: u64 = 1 << 31;
const HEADER_INFO: u64 = HEADER_LENGTH << HEADER_LENGTH_SHIFT | SPH;
const LENGTH: u64 = 0xffff << 32;

const TYPE_IPV4_OPTIONS: u64 = 1 << 5;
/// All headers that a descriptor has bits for, and what comes of them.
const TYPES: u64 = 0xff << 4;
const HASH: u64 = 0xffff_ffff_0000_000f;
/// That a transport checksum was looked at, and was wrong; the same of any checksum.
const L4_CHECKED: u64 = 1 << 4 | 1 << 5 | 1 << 29;
const CHECKED: u64 = L4_CHECKED | 1 << 6 | 1 << 30;
/// Places of counters.
const GPRC: usize = 0;
const GORCL: usize = 1;
const ROC: usize = 7;
const RLEC: usize = 9;
const GPTC: usize = 0;
const GOTCL: usize = 1;
/// Where a TCP header has its flags, and one of them.
const FLAGS: usize = 13;
const PSH: u8 = 1 << 3;
/// Buffers for headers are multiples of this (SRRCTL.BSIZEHEADER).
const HEADER_BUFFER_UNIT: usize = 64;
/// Bytes of the shortest frame, without its check sequence; of that; of the longest frame that every
/// receiver takes, with it.
const MIN_FRAME: u8 = 60;
const CHECK_SEQUENCE: usize = 4;
const LONGEST: u32 = 1518;

/// Changes the descriptors of both.
fn each(ours: &mut Received, theirs: &mut Received, change: fn(&mut [u64; 2])) {
    for (_, descriptor) in ours.descriptors.iter_mut().chain(&mut theirs.descriptors) {
        change(&mut descriptor.raw);
    }
}

/// Leaves what does not depend on which headers were recognised.
fn unparse(ours: &mut Received, theirs: &mut Received) {
    join(ours);
    join(theirs);
    each(ours, theirs, |[low, high]| {
        *low &= !(TYPES | HASH);
        *high &= !CHECKED;
    });
}

/// Sets the PSH that a segment lost, if `mine` has it, and makes its checksum right again.
fn push(packet: &Packet, mine: &[u8], other: &mut [u8]) {
    let Some(context) = packet.context else {
        return;
    };
    let tag = if packet.data.vlan { 4 } else { 0 };
    let tcp = usize::from(context.mac_len) + usize::from(context.ip_len) + tag;
    let flags = mine.get(tcp + FLAGS).copied().unwrap_or(0);
    let Some(&mut [_, ref mut lost, _, _, ref mut high, ref mut low]) = other
        .get_mut(tcp + FLAGS - 1..)
        .and_then(|bytes| bytes.first_chunk_mut())
    else {
        return;
    };
    if flags & !*lost & PSH != 0 {
        *lost |= PSH;
        let sum = u32::from(!u16::from_be_bytes([*high, *low])) + u32::from(PSH);
        // CAST: The carry was added to it.
        [*high, *low] = (!((sum & 0xffff) as u16 + (sum >> 16) as u16)).to_be_bytes();
    }
}

/// What is left when a packet may go to another queue, which splits it in another way.
fn misplace(seen: &mut Received) {
    join(seen);
    for (queue, descriptor) in &mut seen.descriptors {
        *queue = 0;
        descriptor.raw[0] &= !HASH;
    }
    (seen.causes, seen.messages) = (0, 0);
}

/// Bytes that were split off as headers.
fn headers(seen: &Received) -> u64 {
    let low = seen.descriptors.first().map_or(0, |(_, part)| part.raw[0]);
    match low & SPH {
        0 => 0,
        _ => low >> HEADER_LENGTH_SHIFT & HEADER_LENGTH,
    }
}

/// Makes one descriptor of all, with all bytes, so that it does not matter how they were split.
fn join(seen: &mut Received) {
    seen.used.fill(0);
    let Some((queue, mut whole)) = seen.descriptors.last().cloned() else {
        return;
    };
    let all = seen.descriptors.iter().flat_map(|(_, part)| {
        let mut header = part.header.clone();
        if !header.is_empty() && !part.payload.is_empty() {
            // Of headers that end like memory that wasn't written, the end was not seen. What is longer than their
            // buffer went on behind them.
            let len = part.raw[0] >> HEADER_LENGTH_SHIFT & HEADER_LENGTH;
            let fits = header.len().next_multiple_of(HEADER_BUFFER_UNIT);
            header.resize(header.len().max(fits.min(len as usize)), place::FILL);
        }
        [&header[..], &part.payload].concat()
    });
    whole.payload = all.collect();
    whole.header.clear();
    whole.raw[0] &= !HEADER_INFO;
    whole.raw[1] &= !(HBO | LENGTH);
    seen.descriptors = vec![(queue, whole)];
}

/// Takes the known differences out of what a frame has done.
pub fn received(settings: &Settings, frame: &[u8], ours: &mut Received, theirs: &mut Received) {
    for known in KNOWN {
        if let Mask::Receive(mask) = known.mask {
            mask(settings, frame, ours, theirs);
        }
    }
}

/// Takes the known differences out of what has become of a packet.
pub fn sent(packet: &Packet, ours: &mut Sent, theirs: &mut Sent) {
    for known in KNOWN {
        if let Mask::Transmit(mask) = known.mask {
            mask(packet, ours, theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_names_each_difference() {
        let text = include_str!("../../../Documentation/models.md");
        for known in KNOWN.iter().chain(rings::KNOWN) {
            let (differs, decides) = known.decides.split_once("; ").unwrap();
            let line = format!("| {} | {differs} | {decides} |", known.what);
            assert!(text.contains(&line), "{line}");
        }
    }
}
