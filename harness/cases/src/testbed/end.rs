// SPDX-License-Identifier: MIT OR Apache-2.0

//! The end of a guest, and what is looked at then.

use vm::Verdict;

use super::Testbed;
use crate::{KernelFault, Result, Station};

impl Testbed {
    /// Ends the guest; fails if the kernel complained.
    pub fn finish(self) -> Result {
        self.verdict().map(drop)
    }

    /// As [`Testbed::finish`]; returns where the guest's logs are.
    pub fn verdict(self) -> Result<Verdict> {
        if let Some(unfinished) = self.unfinished {
            unfinished.finish();
        }
        let verdict = self.guest.finish()?;
        KernelFault::tell(&verdict);
        Ok(verdict)
    }

    /// Ends the guest without a look at its log.
    pub(crate) fn abandon(self) {
        if let Some(unfinished) = self.unfinished {
            unfinished.finish();
        }
    }

    /// As [`Testbed::finish`]; returns the values of these registers of a NIC once the guest is
    /// off.
    pub fn finish_and_read<const N: usize>(
        self,
        station: Station,
        offsets: [u32; N],
    ) -> Result<[u32; N]> {
        let device = self.pci_device(station)?;
        let registers = u64::from(self.port_of(&device)?.registers);
        if let Some(unfinished) = self.unfinished {
            unfinished.finish();
        }
        let (verdict, values) = self.guest.finish_and_look(|guest| {
            let mut values = [0; N];
            for (value, offset) in values.iter_mut().zip(offsets) {
                *value = guest.read_register(registers + u64::from(offset))?;
            }
            Ok(values)
        })?;
        KernelFault::tell(&verdict);
        Ok(values)
    }
}
