// SPDX-License-Identifier: GPL-2.0

//! The semaphores by which the ports' drivers and the firmware share the PHYs, as the C driver takes
//! them (`igb_acquire_swfw_sync_82575()`).

use i82576::regs::{
    self,
    status,
    sw_fw_sync,
    swsm, //
};
use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::{
    Hw,
    GONE, //
};

/// How often to try a semaphore, and the delay in between.
const TRIES: u32 = 200;
const PAUSE: Delta = Delta::from_millis(5);

/// Both bits of SWSM, which guard SW_FW_SYNC. Dropping it releases them.
struct Swsm<'a, 'bound>(&'a Hw<'bound>);

impl<'a, 'bound> Swsm<'a, 'bound> {
    fn try_acquire(hw: &'a Hw<'bound>) -> Option<Self> {
        // Reading it takes the bit, unless it is taken.
        if hw.read(regs::SWSM) & swsm::SMBI != 0 {
            return None;
        }
        // From here on dropping it releases what was taken.
        let this = Self(hw);

        hw.modify(regs::SWSM, 0, swsm::SWESMBI);
        // It stays only if the firmware has not taken it.
        (hw.read(regs::SWSM) & swsm::SWESMBI != 0).then_some(this)
    }
}

impl Drop for Swsm<'_, '_> {
    fn drop(&mut self) {
        self.0.modify(regs::SWSM, swsm::SMBI | swsm::SWESMBI, 0);
    }
}

/// The port's PHY, which neither firmware nor another driver uses until this is dropped.
pub(super) struct PhyLock<'a, 'bound> {
    hw: &'a Hw<'bound>,
    bit: u32,
}

impl<'a, 'bound> PhyLock<'a, 'bound> {
    /// # Errors
    ///
    /// `EBUSY` if it stays taken, `ENODEV` if the device is gone.
    pub(super) fn acquire(hw: &'a Hw<'bound>) -> Result<Self> {
        let port = match hw.read(regs::STATUS) {
            GONE => return Err(ENODEV),
            value => status::port(value),
        };
        let bit = sw_fw_sync::phy(port);

        for _ in 0..TRIES {
            if let Some(_swsm) = Swsm::try_acquire(hw) {
                let sync = hw.read(regs::SW_FW_SYNC);

                if sync & (bit | bit << sw_fw_sync::FIRMWARE_SHIFT) == 0 {
                    hw.write(regs::SW_FW_SYNC, sync | bit);
                    return Ok(Self { hw, bit });
                }
            }
            fsleep(PAUSE);
        }
        Err(EBUSY)
    }
}

impl Drop for PhyLock<'_, '_> {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            if let Some(_swsm) = Swsm::try_acquire(self.hw) {
                self.hw.modify(regs::SW_FW_SYNC, self.bit, 0);
                return;
            }
            if self.hw.read(regs::STATUS) == GONE {
                return;
            }
            fsleep(PAUSE);
        }
        // Like other drivers, go on without it after a while.
        pr_err!("the semaphore between ports and firmware is not released\n");
    }
}
