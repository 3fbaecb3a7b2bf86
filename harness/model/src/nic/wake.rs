// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sleep, in D3, and what ends it (82576 datasheet, chapter "Wake-Up"): a change of the link, and packets that
//! `filters` pass. Once a packet has woken it, no other one does until WUS is cleared of it, and so for the link
//! (82541's manual, "ACPI Power Management Wakeup"): WUPL and WUPM have the first.
//!
//! WUC.PME_EN is PMCSR's bit, too. Here the slot has one, the port another: drivers set both.

mod filters;

use i82576::{
    limits::FLEXIBLE_FILTERS,
    regs::{
        IPAV, Reg, WUC, WUFC, WUPL, WUS, fhft_length, fhft_mask, fhft_value, ip4at, ip6at, wuc,
        wufc, wupl, wupm,
    },
};

use super::{Nic, registers::Registers};

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
        if self.link_is_up() && self.wake(filters::passed(frame, &self.registers)) {
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
        // Those of a packet, or the link's.
        let alike = match causes & wufc::LNKC {
            0 => !wufc::LNKC,
            link => link,
        };
        let causes = causes & filter;
        let has_woken = self.registers.get(WUS) & alike != 0;
        let wakes = self.asleep && causes != 0 && !has_woken;
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
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        self.registers.set(WUPL, len.min(wupl::MAX));
        for (n, bytes) in (0..PACKET).zip(frame.chunks(4)) {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            self.registers.set(wupm(n), u32::from_le_bytes(word));
        }
    }
}

/// What no reset clears, as power stays.
pub(super) fn kept(registers: &Registers) -> Vec<(Reg, u32)> {
    let filters = (0..FLEXIBLE_FILTERS).flat_map(|filter| {
        let rows = (0..16).map(move |row| fhft_mask(filter, row));
        let bytes = (0..32).map(move |n| fhft_value(filter, n));
        rows.chain(bytes).chain([fhft_length(filter)])
    });
    let addresses = (0..4).flat_map(|n| [ip4at(n), ip6at(n)]);
    let all = [WUC, WUFC, WUS, WUPL, IPAV].into_iter();
    let all = all.chain((0..PACKET).map(wupm));
    let all = all.chain(addresses).chain(filters);
    all.map(|reg| (reg, registers.get(reg))).collect()
}
