// SPDX-License-Identifier: MIT OR Apache-2.0

//! The NVM: what the device is configured from after a reset (82576 datasheet, chapter "Non-Volatile
//! Memory Map").

use i82576::{pci, regs::eerd};

/// Words of the area that software reads and whose sum is checked.
const WORDS: usize = 0x40;
/// The sum of all words.
const SUM: u16 = 0xbaba;

const SUBSYSTEM: usize = 0x0b;
const SUBSYSTEM_VENDOR: usize = 0x0c;
const DEVICE: usize = 0x0d;
const CHECKSUM: usize = 0x3f;

/// The words of an NVM.
#[derive(Debug, Clone)]
pub(crate) struct Nvm([u16; WORDS]);

impl Nvm {
    /// One that names the port's Ethernet address.
    pub(crate) fn new(mac: [u8; 6]) -> Self {
        let mut words = [0; WORDS];
        let [a, b, c, d, e, f] = mac;
        for (word, bytes) in words.iter_mut().zip([[a, b], [c, d], [e, f]]) {
            *word = u16::from_le_bytes(bytes);
        }
        words[SUBSYSTEM] = 0xa03c;
        words[SUBSYSTEM_VENDOR] = pci::VENDOR;
        words[DEVICE] = pci::DEVICE_COPPER;
        let sum = words
            .iter()
            .fold(0, |sum: u16, word| sum.wrapping_add(*word));
        words[CHECKSUM] = SUM.wrapping_sub(sum);
        Self(words)
    }

    /// The port's Ethernet address.
    pub(crate) fn mac(&self) -> [u8; 6] {
        let [a, b, c, ..] = self.0.map(u16::to_le_bytes);
        [a[0], a[1], b[0], b[1], c[0], c[1]]
    }

    /// What EERD reads as, once this was written to it: a word that isn't there is erased.
    pub(crate) fn command(&self, eerd: u32) -> u32 {
        if eerd & eerd::START == 0 {
            return eerd;
        }
        let word = self.0.get((eerd >> 2) as usize & 0x3fff);
        u32::from(word.copied().unwrap_or(0xffff)) << 16 | eerd & 0xfffc | eerd::DONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [0x52, 0x54, 0, 1, 2, 3];

    #[test]
    fn the_words_have_the_sum_that_drivers_check() {
        let nvm = Nvm::new(MAC);
        let words = (0..0x40).map(|word| eerd::data(nvm.command(eerd::read(word))).unwrap());
        assert_eq!(words.fold(0, u16::wrapping_add), 0xbaba);
        assert_eq!(nvm.mac(), MAC);
    }

    #[test]
    fn a_word_beyond_the_end_is_erased() {
        let nvm = Nvm::new(MAC);
        assert_eq!(eerd::data(nvm.command(eerd::read(0x3fff))), Some(0xffff));
    }
}
