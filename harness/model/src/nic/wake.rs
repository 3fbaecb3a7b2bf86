// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sleep, in D3, and what ends it (82576 datasheet, chapter "Wake-Up"): a change of the link, magic packets, and
//! packets by their address. There are no filters for ARP, IP and patterns.
//!
//! WUC.PME_EN is PMCSR's bit, too. Here the slot has one, the port another: drivers set both.

use i82576::regs::{self, Reg, WUC, WUFC, WUPL, WUS, wuc, wufc, wupm};

use super::{Nic, receive, registers::Registers};

/// How often a magic packet has the address, and what comes before.
const REPETITIONS: usize = 16;
const PREAMBLE: [u8; 6] = [0xff; 6];
/// Registers with a packet's bytes.
const PACKET: u16 = 32;

impl Nic {
    /// Goes to sleep, or ends that. Nothing is received meanwhile, and nothing sent.
    pub fn set_asleep(&mut self, asleep: bool) {
        self.asleep = asleep;
        self.wakes = false;
    }

    /// Takes a frame while it sleeps, without its check sequence.
    pub fn receive_asleep(&mut self, frame: &[u8]) {
        if !self.link_is_up() {
            return;
        }
        let station = regs::rah::decode(
            self.registers.get(regs::ral(0)),
            self.registers.get(regs::rah(0)),
        );
        let mut causes = match receive::is_for_us(frame, &self.registers) {
            false => 0,
            true => match frame {
                [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => wufc::BC,
                [first, ..] if first & 1 != 0 => wufc::MC,
                _ => wufc::EX,
            },
        };
        if causes != 0 && station.is_some_and(|station| is_magic(frame, station)) {
            causes |= wufc::MAG;
        }
        if self.wake(causes) {
            self.keep(frame);
        }
    }

    /// Something has happened that may wake. Says whether it does.
    pub(super) fn wake(&mut self, causes: u32) -> bool {
        let mut filter = match self.registers.has(WUC, wuc::PME_EN) {
            true => self.registers.get(WUFC),
            false => 0,
        };
        if self.registers.has(WUC, wuc::APME) {
            filter |= wufc::MAG;
        }
        let causes = causes & filter;
        let wakes = self.asleep && causes != 0;
        if wakes {
            self.registers.modify(WUS, 0, causes);
            self.wakes = true;
        }
        wakes
    }

    /// Whether something has woken it since this was last asked.
    pub fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.wakes)
    }

    /// Keeps the packet that wakes for the driver to look at.
    fn keep(&mut self, frame: &[u8]) {
        // CAST: No frame is longer.
        self.registers.set(WUPL, frame.len() as u32);
        for (n, bytes) in (0..PACKET).zip(frame.chunks(4)) {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            self.registers.set(wupm(n), u32::from_le_bytes(word));
        }
    }
}

/// What no reset clears, as power stays.
pub(super) fn kept(registers: &Registers) -> Vec<(Reg, u32)> {
    let registers_of_wake = [WUC, WUFC, WUS, WUPL].into_iter();
    let all = registers_of_wake.chain((0..PACKET).map(wupm));
    all.map(|reg| (reg, registers.get(reg))).collect()
}

fn is_magic(frame: &[u8], station: [u8; 6]) -> bool {
    let pattern = [&PREAMBLE[..], &station.repeat(REPETITIONS)].concat();
    frame.windows(pattern.len()).any(|window| window == pattern)
}
