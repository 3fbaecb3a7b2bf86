// SPDX-License-Identifier: GPL-2.0

//! Resets of the device, and what becomes of memory when one fails.

use i82576::regs;
use kernel::{
    prelude::*,
    sync::atomic::Relaxed,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::Hw;

impl Hw<'_> {
    /// Brings the device into a known state: nothing enabled, link negotiation running.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT`, and `ENODEV` if the device is gone. Queues may still run; [`Self::finish_reset`] tries again.
    pub(crate) fn reset(&self) -> Result {
        let outcome = self.try_reset();

        self.is_stray.store(outcome.is_err(), Relaxed);
        outcome
    }

    fn try_reset(&self) -> Result {
        self.write(regs::IMC, u32::MAX);
        self.write(regs::EIMC, u32::MAX);
        self.stop_receiving();
        self.stop_sending();
        self.begin_reset();
        fsleep(Delta::from_millis(1));
        self.wait(regs::CTRL, |value| value & regs::ctrl::RST == 0)?;
        // The MAC address comes from the NVM. Where there is none, as in QEMU, this never ends.
        let _ = self.wait(regs::EECD, |value| value & regs::eecd::AUTO_RD != 0);
        self.write(regs::IMC, u32::MAX);
        self.read(regs::ICR);

        self.modify(regs::CTRL_EXT, 0, regs::ctrl_ext::DRV_LOAD);
        self.begin_anew();
        self.restart_autoneg()
    }

    /// Stops new requests on the bus and waits for pending ones, then resets the device, which enables
    /// requests again: a reset with one pending can hang the bus (`igb_disable_pcie_master()`). On a
    /// timeout it is reset all the same.
    pub(super) fn begin_reset(&self) {
        self.modify_ctrl(0, regs::ctrl::GIO_MASTER_DISABLE);
        let disabled = self.wait(regs::STATUS, |value| {
            value & regs::status::GIO_MASTER_ENABLE == 0
        });
        if disabled == Err(ETIMEDOUT) {
            pr_warn!("requests on the bus stay pending before a reset\n");
        }
        self.write_reset();
    }

    /// Makes the device stop all DMA at once, for when a queue does not stop by itself. The
    /// interface must be restarted afterwards ([`Self::was_reset`]).
    ///
    /// # Errors
    ///
    /// The device may still do DMA: what it may access must never be freed. It is counted.
    pub(crate) fn stop_dma(&self) -> Result {
        pr_err!("a queue does not stop: the device is reset\n");
        self.was_reset.store(true, Relaxed);
        self.reset().inspect_err(|error| {
            self.leaked_rings.add(1);
            pr_err!("the device does not come out of reset, its memory is leaked: {error:?}\n");
        })
    }

    /// Resets the device again if the last reset failed: a queue that still runs must not be given
    /// another ring.
    ///
    /// # Errors
    ///
    /// Those of [`Self::reset`].
    pub(crate) fn finish_reset(&self) -> Result {
        match self.is_stray.load(Relaxed) {
            true => self.reset(),
            false => Ok(()),
        }
    }

    /// Returns whether [`Self::stop_dma`] was called since the last call of this: then no queue runs,
    /// not even one whose type is `Running`.
    pub(crate) fn was_reset(&self) -> bool {
        self.was_reset.xchg(false, Relaxed)
    }

    /// How many rings were leaked because the device did not stop accessing them.
    pub(crate) fn leaked_rings(&self) -> u64 {
        self.leaked_rings.get()
    }
}
