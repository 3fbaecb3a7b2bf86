// SPDX-License-Identifier: MIT OR Apache-2.0

//! The bus and the wire of a model: memory that starts at an address, and nothing else.

use i82576::limits::{MAX_FRAME, MAX_VECTORS, VLAN_TAG};
use model::{Fault, Host};

/// Where memory starts: zero is no address.
pub(crate) const BASE: u64 = 0x10000;

/// What memory holds that nobody wrote to.
pub(crate) const UNTOUCHED: u8 = 0xa5;

pub(crate) struct Bus {
    pub(crate) memory: Vec<u8>,
    /// What was put on the wire.
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) accesses: usize,
    pub(crate) interrupts: usize,
}

impl Bus {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            memory: vec![UNTOUCHED; bytes],
            frames: Vec::new(),
            accesses: 0,
            interrupts: 0,
        }
    }

    /// Memory at an address.
    pub(crate) fn at(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(address.checked_sub(BASE)?).ok()?;
        self.memory.get_mut(start..start.checked_add(len)?)
    }

    pub(crate) fn put(&mut self, address: u64, raw: [u64; 2]) {
        if let Some(place) = self.at(address, 16) {
            for (place, word) in place.chunks_mut(8).zip(raw) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        }
    }

    pub(crate) fn get(&mut self, address: u64) -> Option<[u64; 2]> {
        let bytes = u128::from_le_bytes(self.at(address, 16)?.try_into().ok()?);
        Some([bytes as u64, (bytes >> 64) as u64])
    }
}

impl Host for Bus {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.accesses += 1;
        bytes.copy_from_slice(self.at(address, bytes.len()).ok_or(Fault::Unanswered)?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.accesses += 1;
        self.at(address, bytes.len())
            .ok_or(Fault::Unanswered)?
            .copy_from_slice(bytes);
        Ok(())
    }

    fn interrupt(&mut self, vector: u16) {
        assert!(vector < MAX_VECTORS);
        self.interrupts += 1;
    }

    fn send(&mut self, frame: Vec<u8>) {
        // A tag may have come on top.
        assert!(frame.len() <= (MAX_FRAME + VLAN_TAG) as usize);
        self.frames.push(frame);
    }
}
