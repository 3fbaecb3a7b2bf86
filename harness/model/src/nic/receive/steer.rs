// SPDX-License-Identifier: MIT OR Apache-2.0

//! To which queue a packet goes (82576 datasheet, chapter "Rx Queues Assignment"): the first of
//! EtherType filters, SYN filter and five-tuple filters that matches says so, then RSS, then
//! MRQC.Def_Q. RFCTL.SYNQFP decides whether the SYN filter comes before the five-tuple filters.
//!
//! The filters are in `filters`, the hash is in `hash`.

mod filters;
mod hash;

use i82576::{
    regs::{MRQC, mrqc, reta},
    rx::RssType,
};

use super::packet::Packet;
use crate::nic::registers::Registers;

/// MRQC: the mode, of which only RSS without virtual functions is modelled, and Def_Q, the queue of
/// what nothing else sends anywhere (chapter "Multiple Receive Queues Command Register").
const MODE_MASK: u32 = 7;
const DEFAULT_QUEUE_SHIFT: u32 = 3;
/// A queue's number.
const QUEUE_MASK: u32 = 0xf;
/// Entries of the redirection table, and how many are in a register.
const TABLE_MASK: u32 = 0x7f;
const TABLE_PER_REGISTER: u32 = 4;

/// Where a packet goes, and what was found on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) queue: u8,
    /// What the hash is of, and the hash. It is computed wherever the packet goes.
    pub(crate) hash: Option<(RssType, u32)>,
    /// A filter asks for an interrupt without moderation.
    pub(crate) immediate: bool,
    /// The EtherType filter that the packet matched.
    pub(crate) ethertype_filter: Option<u8>,
    /// That filter asks for a timestamp.
    pub(crate) timestamp: bool,
}

/// Where a packet goes.
pub(crate) fn steer(packet: &Packet, registers: &Registers) -> Destination {
    let ether_type = filters::ether_type(packet, registers);
    let five_tuple = filters::five_tuple(packet, registers);
    let syn = filters::syn(packet, registers);
    let by_port = if filters::syn_comes_first(registers) {
        syn.or(five_tuple.queue)
    } else {
        five_tuple.queue.or(syn)
    };
    let hash = hash::hash(packet, registers).filter(|_| is_rss(registers));
    let queue = ether_type
        .queue
        .or(by_port)
        .or(hash.map(|(_, hash)| redirect(hash, registers)))
        .unwrap_or(queue(registers.get(MRQC), DEFAULT_QUEUE_SHIFT));
    Destination {
        queue,
        hash,
        immediate: ether_type.immediate || five_tuple.immediate,
        ethertype_filter: ether_type.number,
        timestamp: ether_type.timestamp,
    }
}

/// Whether RSS is on. As opposed to QEMU's model, RXCSUM.PCSD only says whether the hash is reported.
fn is_rss(registers: &Registers) -> bool {
    registers.get(MRQC) & MODE_MASK == mrqc::ENABLE_RSS
}

/// The queue of a hash, by the redirection table.
fn redirect(hash: u32, registers: &Registers) -> u8 {
    let entry = hash & TABLE_MASK;
    // CAST: There are 128 entries.
    let register = registers.get(reta((entry / TABLE_PER_REGISTER) as u16));
    queue(register, entry % TABLE_PER_REGISTER * 8)
}

/// The queue in a register's field.
fn queue(value: u32, shift: u32) -> u8 {
    // CAST: It has four bits.
    (value >> shift & QUEUE_MASK) as u8
}
