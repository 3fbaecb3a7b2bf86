// SPDX-License-Identifier: MIT OR Apache-2.0

//! Filters that send packets to a queue (82576 datasheet, chapters "L2 Ether-type Filters", "SYN
//! Packet Filters" and "5-tuple Filters", and the registers of the same names).

use i82576::{
    five_tuple::Protocol,
    limits::FIVE_TUPLE_FILTERS,
    regs::{self, RFCTL, Reg, etqf, ftqf, imir, imirext},
};

use super::queue;
use crate::nic::{
    receive::packet::{Addresses, Ip, Packet},
    registers::Registers,
};

/// ETQF: EtherType, queue, immediate interrupt, and whether there is a queue.
const ETQF_FILTERS: u8 = 8;
const ETQF_QUEUE_SHIFT: u32 = 16;
const ETQF_IMMEDIATE: u32 = 1 << 29;
const ETQF_QUEUE_ENABLE: u32 = 1 << 31;

/// SYN packet queue filter: whether there is a queue, and which. RFCTL.SYNQFP has it come before the
/// five-tuple filters.
pub(crate) const SYNQF: Reg = Reg(0x055fc);
const SYNQF_QUEUE_ENABLE: u32 = 1 << 0;
const SYNQF_QUEUE_SHIFT: u32 = 1;
const RFCTL_SYNQFP: u32 = 1 << 19;

/// FTQF: the virtual function.
const FTQF_VF_SHIFT: u32 = 11;
const FTQF_VF_MASK: u32 = 7;
/// IMIR: immediate interrupt.
const IMIR_IMMEDIATE: u32 = 1 << 16;
/// IMIREXT: packets below a size, and TCP's flags, from URG down to FIN.
const IMIREXT_SIZE_MASK: u32 = 0xfff;
const IMIREXT_FLAGS_SHIFT: u32 = 13;
const FLAGS: u8 = 6;

const SYN: u8 = 1 << 1;

/// What the EtherType filters say.
#[derive(Debug, Default)]
pub(super) struct ByEtherType {
    pub(super) number: Option<u8>,
    pub(super) queue: Option<u8>,
    pub(super) immediate: bool,
    pub(super) timestamp: bool,
}

/// Matches the EtherType filters with all type fields, that of a tag too; the last filter that matches
/// counts. (QEMU's model takes the first, and the first field only.)
pub(super) fn ether_type(packet: &Packet, registers: &Registers) -> ByEtherType {
    let types = [packet.ether_type, packet.inner_type];
    let matches = |&n: &u8| {
        let value = registers.get(regs::etqf(n.into()));
        // CAST: The type is in the low half.
        value & etqf::ENABLE != 0 && types.contains(&Some((value >> etqf::TYPE_SHIFT) as u16))
    };
    let Some(number) = (0..ETQF_FILTERS).rev().find(matches) else {
        return ByEtherType::default();
    };
    let value = registers.get(regs::etqf(number.into()));
    ByEtherType {
        number: Some(number),
        queue: (value & ETQF_QUEUE_ENABLE != 0).then(|| queue(value, ETQF_QUEUE_SHIFT)),
        immediate: value & ETQF_IMMEDIATE != 0,
        timestamp: value & etqf::TIMESTAMP != 0,
    }
}

/// The queue that the SYN filter has for TCP packets with that flag.
pub(super) fn syn(packet: &Packet, registers: &Registers) -> Option<u8> {
    let value = registers.get(SYNQF);
    let is_syn = (packet.transport.as_ref()).is_some_and(|transport| transport.flags & SYN != 0);
    (is_syn && value & SYNQF_QUEUE_ENABLE != 0).then(|| queue(value, SYNQF_QUEUE_SHIFT))
}

pub(super) fn syn_comes_first(registers: &Registers) -> bool {
    registers.has(RFCTL, RFCTL_SYNQFP)
}

/// What the five-tuple filters say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ByFiveTuple {
    pub(super) queue: Option<u8>,
    pub(super) immediate: bool,
}

/// Matches the five-tuple filters. Of those that match and have a queue, the one with the highest
/// priority counts, and of these the first.
///
/// Addresses are those of IPv4. One without an address matches IPv6, too: the PTP filter of Linux's `igb`,
/// which is for messages over both, is one.
pub(super) fn five_tuple(packet: &Packet, registers: &Registers) -> ByFiveTuple {
    let mut found = ByFiveTuple::default();
    let Some(ip) = &packet.ip else { return found };
    let mut highest = None;
    for n in 0..FIVE_TUPLE_FILTERS {
        if !filter_matches(n, packet, ip, registers) {
            continue;
        }
        let (tuple, more) = (registers.get(regs::ftqf(n)), registers.get(regs::imir(n)));
        found.immediate |= more & IMIR_IMMEDIATE != 0;
        let priority = Some(more >> imir::PRIORITY_SHIFT);
        if tuple & ftqf::QUEUE_ENABLE != 0 && priority > highest {
            highest = priority;
            found.queue = Some(queue(tuple, ftqf::QUEUE_SHIFT));
        }
    }
    found
}

fn filter_matches(n: u16, packet: &Packet, ip: &Ip, registers: &Registers) -> bool {
    let (source, destination) = match ip.addresses {
        Addresses::V4 {
            source,
            destination,
        } => (Some(source), Some(destination)),
        Addresses::V6 { .. } => (None, None),
    };
    let is = |reg, address: Option<[u8; 4]>| {
        address.is_some_and(|address| registers.get(reg) == u32::from_le_bytes(address))
    };
    let tuple = registers.get(regs::ftqf(n));
    let more = registers.get(regs::imir(n));
    let ext = registers.get(regs::imirext(n));
    // A filter that is all zeroes, as after a reset, is none.
    if tuple & ftqf::QUEUE_ENABLE == 0 && more & IMIR_IMMEDIATE == 0 {
        return false;
    }
    let transport = packet.transport.as_ref();
    // CAST: The fields have as many bits as the types.
    let protocol = (tuple & ftqf::PROTOCOL_MASK) as u8;
    let source_port = (registers.get(regs::spqf(n)) as u16).swap_bytes();
    let destination_port = ((more & imir::PORT_MASK) as u16).swap_bytes();
    let len = packet.len - packet.stripped(registers);

    (tuple & ftqf::VF_BP != 0 || tuple >> FTQF_VF_SHIFT & FTQF_VF_MASK == 0)
        && (tuple & ftqf::PROTOCOL_BP != 0 || ip.protocol == Some(protocol))
        && (tuple & ftqf::SOURCE_BP != 0 || is(regs::saqf(n), source))
        && (tuple & ftqf::DESTINATION_BP != 0 || is(regs::daqf(n), destination))
        && (tuple & ftqf::SOURCE_PORT_BP != 0
            || transport.is_some_and(|transport| transport.source_port == source_port))
        && (more & imir::PORT_BP != 0
            || transport.is_some_and(|transport| transport.destination_port == destination_port))
        && (ext & imirext::SIZE_BP != 0 || len < (ext & IMIREXT_SIZE_MASK) as usize)
        && (ext & imirext::CONTROL_BP != 0
            || transport.is_some_and(|transport| {
                transport.protocol == Protocol::Tcp && flags(ext) & transport.flags != 0
            }))
}

/// The flags that IMIREXT asks for, as TCP has them: one of them is enough, which is how the model reads
/// the datasheet.
fn flags(ext: u32) -> u8 {
    (0..FLAGS)
        .filter(|flag| ext >> IMIREXT_FLAGS_SHIFT >> (FLAGS - 1 - flag) & 1 != 0)
        .fold(0, |flags, flag| flags | 1 << flag)
}
