// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which frames are received (82576 datasheet, chapter "Packet Filtering", and for flow control
//! "PAUSE and MAC Control Frames Forwarding"). There are no filters of a management controller, and
//! VMDq is off.
//!
//! Addresses are filtered as by QEMU's model where the datasheet leaves it open: RCTL.MPE is not for
//! broadcast.

use i82576::{
    limits::{FRAME_CHECK, MAX_FRAME, MIN_FRAME, RECEIVE_ADDRESSES, VLAN_TAG},
    regs::{
        CTRL, FCAH, FCAL, FCRUC, FCT, LENERRS, RCTL, RFCTL, RLEC, RLPML, ROC, RUC, Reg, ctrl, mta,
        rah, ral, rctl, rfctl, vfta,
    },
};

use super::packet::Packet;
use crate::nic::registers::Registers;

/// RCTL.MO, and how far it shifts the last two bytes of an address for the multicast table.
const MO_SHIFT: u32 = 12;
const MO_SHIFTS: [u32; 4] = [4, 3, 2, 0];
/// Bits of the multicast table and of the VLAN table.
const TABLE_MASK: u16 = 0xfff;
/// Bytes of an untagged frame without RCTL.LPE, with its check sequence.
const STANDARD_FRAME: usize = 1518;
/// Frames with fewer bytes, with their check sequence, are not even counted (chapter "Receive
/// Undersize Count").
const SHORTEST_COUNTED: usize = 25;
/// Type fields up to this are lengths (IEEE 802.3).
const LONGEST_LENGTH: u16 = 1500;
/// The opcode of a pause (IEEE 802.3, annex 31A).
const PAUSE: u16 = 1;
const BROADCAST: [u8; 6] = [0xff; 6];

/// Why a frame is not received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The receiver is off.
    Disabled,
    /// The address is not one of those that are received.
    Address,
    /// Nor is the VLAN.
    Vlan,
    /// It is a pause frame, which [`pause`] says the time of.
    Pause,
    /// It is another MAC control frame.
    Control,
    /// It is shorter than Ethernet has it.
    TooShort,
    /// It is no frame.
    Runt,
    /// It is longer than RLPML, or than Ethernet has it.
    TooLong,
    /// Its type field is a length, and it is shorter than that.
    Length,
}

impl Refusal {
    /// What counts it, one each (chapter "Statistics Registers Descriptions").
    pub(crate) const fn counters(self) -> &'static [Reg] {
        match self {
            Self::TooShort => &[RUC, RLEC],
            Self::TooLong => &[ROC, RLEC],
            Self::Length => &[LENERRS],
            Self::Control => &[FCRUC],
            Self::Disabled | Self::Address | Self::Vlan | Self::Pause | Self::Runt => &[],
        }
    }
}

/// Whether a frame without its check sequence is received.
///
/// # Errors
///
/// The first reason not to.
pub(crate) fn admits(packet: &Packet, frame: &[u8], registers: &Registers) -> Result<(), Refusal> {
    if !registers.has(RCTL, rctl::EN) {
        return Err(Refusal::Disabled);
    }
    let Some(&destination) = frame.first_chunk() else {
        return Err(Refusal::Runt);
    };
    match control(packet, frame, registers) {
        Some(PAUSE) if registers.has(RCTL, rctl::DPF) => return Err(Refusal::Pause),
        Some(PAUSE) | None => {
            if !admits_address(destination, registers) {
                return Err(Refusal::Address);
            }
        }
        Some(_) if registers.has(RCTL, rctl::PMCF) => {}
        Some(_) => return Err(Refusal::Control),
    }
    if !admits_vlan(packet, registers) {
        return Err(Refusal::Vlan);
    }
    admits_length(packet, registers)
}

/// Whether a frame is for the port, by its address and its VLAN alone, while the receiver is on.
pub(in crate::nic) fn is_for_us(packet: &Packet, frame: &[u8], registers: &Registers) -> bool {
    let destination = frame.first_chunk();
    registers.has(RCTL, rctl::EN)
        && destination.is_some_and(|destination| admits_address(*destination, registers))
        && admits_vlan(packet, registers)
}

/// For how long a pause frame asks for silence, in units of 512 bits: zero is XON. `None` if the frame
/// is not one, or CTRL.RFCE has the device take no notice.
pub(crate) fn pause(packet: &Packet, frame: &[u8], registers: &Registers) -> Option<u16> {
    let opcode = control(packet, frame, registers)?;
    let time = frame.get(packet.payload + 2..)?.first_chunk()?;
    (opcode == PAUSE).then_some(u16::from_be_bytes(*time))
}

/// The opcode of a MAC control frame that is for the device: to the address in FCAL and FCAH, or to its
/// own, and of the type in FCT. Without CTRL.RFCE they are frames as any others.
fn control(packet: &Packet, frame: &[u8], registers: &Registers) -> Option<u16> {
    // CAST: The other half is reserved.
    if !registers.has(CTRL, ctrl::RFCE) || packet.ether_type? != registers.get(FCT) as u16 {
        return None;
    }
    let flow = address(registers.get(FCAL), registers.get(FCAH));
    let station = rah::decode(registers.get(ral(0)), registers.get(rah(0)));
    let destination = Some(*frame.first_chunk()?);
    let is_for_us = destination == Some(flow) || destination == station;
    let opcode = frame.get(packet.payload..)?.first_chunk()?;
    is_for_us.then_some(u16::from_be_bytes(*opcode))
}

fn address(low: u32, high: u32) -> [u8; 6] {
    let ([a, b, c, d], [e, f, ..]) = (low.to_le_bytes(), high.to_le_bytes());
    [a, b, c, d, e, f]
}

fn admits_address(destination: [u8; 6], registers: &Registers) -> bool {
    let is_group = destination[0] & 1 != 0;
    let promiscuous = match is_group {
        _ if destination == BROADCAST => rctl::BAM,
        true => rctl::MPE,
        false => rctl::UPE,
    };
    registers.has(RCTL, promiscuous)
        || (0..RECEIVE_ADDRESSES)
            .any(|n| rah::decode(registers.get(ral(n)), registers.get(rah(n))) == Some(destination))
        || is_group && table_has(multicast_bit(destination, registers), mta, registers)
}

/// The bit of the multicast table for an address.
fn multicast_bit([.., low, high]: [u8; 6], registers: &Registers) -> u16 {
    let offset = (registers.get(RCTL) & rctl::MO_MASK) >> MO_SHIFT;
    // The field has two bits.
    let shift = MO_SHIFTS[offset as usize & 3];
    u16::from_le_bytes([low, high]) >> shift & TABLE_MASK
}

/// Filters VLANs by VFTA. Frames without a tag pass; VLAN 0 is one as any other.
fn admits_vlan(packet: &Packet, registers: &Registers) -> bool {
    let Some(tag) = packet.vlan else { return true };
    !registers.has(RCTL, rctl::VFE) || table_has(tag & TABLE_MASK, vfta, registers)
}

fn table_has(bit: u16, register: fn(u16) -> Reg, registers: &Registers) -> bool {
    registers.has(register(bit / 32), 1 << (bit % 32))
}

/// The most bytes of a frame, with its check sequence.
pub(crate) fn longest(packet: &Packet, registers: &Registers) -> usize {
    let tag = packet.vlan.map_or(0, |_| VLAN_TAG as usize);
    if registers.has(RCTL, rctl::LPE) {
        registers.get(RLPML).min(MAX_FRAME) as usize
    } else {
        STANDARD_FRAME + tag
    }
}

/// Filters by length (chapter "Size Filtering"). RCTL.SBP lets what is too short or too long in, as in
/// QEMU's model.
fn admits_length(packet: &Packet, registers: &Registers) -> Result<(), Refusal> {
    let bytes = packet.len + FRAME_CHECK as usize;
    let longest = longest(packet, registers);
    let stores_bad = registers.has(RCTL, rctl::SBP);
    if bytes < SHORTEST_COUNTED {
        return Err(Refusal::Runt);
    }
    if bytes > MAX_FRAME as usize || bytes > longest && !stores_bad {
        return Err(Refusal::TooLong);
    }
    if packet.len < MIN_FRAME as usize && !stores_bad {
        return Err(Refusal::TooShort);
    }
    let length = packet.inner_type.or(packet.ether_type).unwrap_or(0);
    let has = packet.len.saturating_sub(packet.payload);
    let is_short = length <= LONGEST_LENGTH && usize::from(length) > has;
    if is_short && !registers.has(RFCTL, rfctl::LEF) {
        return Err(Refusal::Length);
    }
    Ok(())
}
