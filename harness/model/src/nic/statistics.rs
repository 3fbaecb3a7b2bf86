// SPDX-License-Identifier: MIT OR Apache-2.0

//! Statistics of the port, which are cleared when they are read (82576 datasheet, chapter "Statistics
//! Registers Descriptions"). Bytes count with the frame check sequence.

use i82576::{
    limits::{FRAME_CHECK, MIN_FRAME},
    regs::{
        BPRC, BPTC, CRCERRS, GORCH, GORCL, GOTCH, GOTCL, GPRC, GPTC, MPRC, MPTC, PRC64, PRC127,
        PRC255, PRC511, PRC1023, PRC1522, PTC64, PTC127, PTC255, PTC511, PTC1023, PTC1522, RFC,
        RJC, Reg, TORH, TORL, TOTH, TOTL, TPR, TPT,
    },
};

use super::registers::Registers;

/// Where the counters are.
const FIRST: u32 = 0x4000;
const END: u32 = 0x4200;

/// Whether it is a register that is cleared when it is read.
pub(super) fn is_counter(reg: Reg) -> bool {
    (FIRST..END).contains(&reg.0)
}

/// Adds to a counter, which stays at its largest value.
pub(super) fn count(registers: &mut Registers, reg: Reg, amount: u32) {
    registers.set(reg, registers.get(reg).saturating_add(amount));
}

/// Adds to a counter of 64 bits.
fn count_bytes(registers: &mut Registers, [low, high]: [Reg; 2], bytes: u32) {
    let value = u64::from(registers.get(high)) << 32 | u64::from(registers.get(low));
    let value = value.saturating_add(u64::from(bytes));
    registers.set(low, value as u32);
    registers.set(high, (value >> 32) as u32);
}

/// The counter for a frame's length, of the counters from 64 to 1522 and more.
fn by_length(bytes: u32, counters: [Reg; 6]) -> Reg {
    let longest = [64, 127, 255, 511, 1023];
    let at = longest.iter().position(|&most| bytes <= most);
    counters[at.unwrap_or(5)]
}

/// The counters of a direction.
struct Counters {
    all: Reg,
    good: Reg,
    bytes: [Reg; 2],
    good_bytes: [Reg; 2],
    by_length: [Reg; 6],
    broadcast: Reg,
    multicast: Reg,
}

const RECEIVED: Counters = Counters {
    all: TPR,
    good: GPRC,
    bytes: [TORL, TORH],
    good_bytes: [GORCL, GORCH],
    by_length: [PRC64, PRC127, PRC255, PRC511, PRC1023, PRC1522],
    broadcast: BPRC,
    multicast: MPRC,
};

const SENT: Counters = Counters {
    all: TPT,
    good: GPTC,
    bytes: [TOTL, TOTH],
    good_bytes: [GOTCL, GOTCH],
    by_length: [PTC64, PTC127, PTC255, PTC511, PTC1023, PTC1522],
    broadcast: BPTC,
    multicast: MPTC,
};

/// A frame has been received from the wire, and let in.
pub(super) fn received(registers: &mut Registers, frame: &[u8]) {
    count_frame(registers, frame, &RECEIVED);
}

/// A frame has come whose check sequence is wrong: CRCERRS is for those that are long enough, RFC for
/// fragments, and RJC for jabbers, which have more than `longest` bytes.
pub(super) fn damaged(registers: &mut Registers, frame: &[u8], longest: usize) {
    let bytes = frame.len() as u32 + FRAME_CHECK;
    let is_fragment = bytes < MIN_FRAME + FRAME_CHECK;
    let counter = if is_fragment { RFC } else { CRCERRS };
    count(registers, counter, 1);
    if bytes as usize > longest {
        count(registers, RJC, 1);
    }
    count(registers, TPR, 1);
    count_bytes(registers, [TORL, TORH], bytes);
}

/// A frame has been sent.
pub(super) fn sent(registers: &mut Registers, frame: &[u8]) {
    count_frame(registers, frame, &SENT);
}

fn count_frame(registers: &mut Registers, frame: &[u8], counters: &Counters) {
    let bytes = frame.len() as u32 + FRAME_CHECK;
    count(registers, counters.all, 1);
    count(registers, counters.good, 1);
    count_bytes(registers, counters.bytes, bytes);
    count_bytes(registers, counters.good_bytes, bytes);
    count(registers, by_length(bytes, counters.by_length), 1);
    if frame.starts_with(&[0xff; 6]) {
        count(registers, counters.broadcast, 1);
    } else if frame.first().is_some_and(|byte| byte & 1 != 0) {
        count(registers, counters.multicast, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_by_length_and_address_with_the_frame_check_sequence() {
        let mut registers = Registers::default();
        received(&mut registers, &[0xff; 60]);
        received(&mut registers, &[0x01; 1514]);
        sent(&mut registers, &[0x02; 124]);
        let values = [PRC64, PRC1522, BPRC, MPRC, GORCL, TPR].map(|reg| registers.get(reg));
        assert_eq!(values, [1, 1, 1, 1, 64 + 1518, 2]);
        let values = [PTC255, PTC127, BPTC, MPTC, GOTCL].map(|reg| registers.get(reg));
        assert_eq!(values, [1, 0, 0, 0, 128]);
    }

    #[test]
    fn damaged_frames_are_none_of_the_good_ones() {
        let mut registers = Registers::default();
        for len in [59, 60, 1514, 1515] {
            damaged(&mut registers, &vec![0; len], 1518);
        }
        let values = [CRCERRS, RFC, RJC, TPR, GPRC, GORCL].map(|reg| registers.get(reg));
        assert_eq!(values, [3, 1, 1, 4, 0, 0]);
        assert_eq!(registers.get(TORL), 63 + 64 + 1518 + 1519);
    }

    #[test]
    fn bytes_are_counted_in_64_bits() {
        let mut registers = Registers::default();
        registers.set(GORCL, u32::MAX);
        received(&mut registers, &[0; 60]);
        assert_eq!((registers.get(GORCL), registers.get(GORCH)), (63, 1));
    }
}
