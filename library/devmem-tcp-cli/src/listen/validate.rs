// SPDX-License-Identifier: MIT OR Apache-2.0

//! Comparing received payload with what its seed makes of it.

use anyhow::Result;
use devmem_tcp::memory::ReadAt;
use devmem_tcp::rx::Extent;
use payload::{Mismatch, Payload};

/// The payload of one connection, in order.
#[derive(Debug, Clone)]
pub(super) struct Validator {
    payload: Option<Payload>,
    offset: u64,
    copy: Vec<u8>,
}

impl Validator {
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self {
            payload: seed.map(Payload::new),
            offset: 0,
            copy: Vec::new(),
        }
    }

    /// Bytes so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes in what is in the memory.
    pub(super) fn take(
        &mut self,
        extent: &Extent,
        memory: &impl ReadAt,
    ) -> Result<Option<Mismatch>> {
        let Some(payload) = self.payload else {
            self.offset += u64::from(extent.len());
            return Ok(None);
        };
        self.copy.resize(extent.len() as usize, 0);
        extent.read(memory, 0, &mut self.copy)?;
        let wrong = payload.check(self.offset, &self.copy).err();
        self.offset += u64::from(extent.len());
        Ok(wrong)
    }

    /// Takes in what is elsewhere.
    pub(super) fn take_linear(&mut self, bytes: &[u8]) -> Option<Mismatch> {
        let wrong = self
            .payload
            .and_then(|payload| payload.check(self.offset, bytes).err());
        self.offset += bytes.len() as u64;
        wrong
    }
}
