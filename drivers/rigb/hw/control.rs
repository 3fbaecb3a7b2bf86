// SPDX-License-Identifier: GPL-2.0

//! The device's registers: receiver, transmitter and port as a whole.
//!
//! CTRL and RCTL have bits of several users. What the driver has written there is remembered instead of
//! read: a bit that reads wrong would be written back, and RCTL.EN, say, stay off.

use i82576::regs::{
    self,
    ctrl,
    rctl,
    rfctl,
    tctl,
    tipg,
    Reg, //
};
use kernel::sync::SpinLockIrq;

use super::Hw;

impl Hw<'_> {
    /// Changes some bits of CTRL.
    pub(super) fn modify_ctrl(&self, clear: u32, set: u32) {
        self.modify_kept(regs::CTRL, &self.ctrl, clear, set);
    }

    /// Changes some bits of RCTL.
    pub(super) fn modify_rctl(&self, clear: u32, set: u32) {
        self.modify_kept(regs::RCTL, &self.rctl, clear, set);
    }

    /// The register is only written with the lock held: the link's interrupt writes CTRL, too.
    fn modify_kept(&self, reg: Reg, kept: &SpinLockIrq<u32>, clear: u32, set: u32) {
        let mut kept = kept.lock();

        *kept = (*kept & !clear) | set;
        self.write(reg, *kept);
    }

    /// Has CTRL reset the device, which clears the bit.
    pub(super) fn write_reset(&self) {
        self.write(regs::CTRL, *self.ctrl.lock() | ctrl::RST);
    }

    /// Has the link come up, and all else off, after a reset. What the NVM says of the board stays.
    pub(super) fn begin_anew(&self) {
        let board = self.read(regs::CTRL) & ctrl::BOARD_MASK;

        self.modify_ctrl(u32::MAX, board | ctrl::SLU);
        self.modify_rctl(u32::MAX, 0);
    }

    /// Enables the receiver and the transmitter. Queues are enabled one by one.
    pub(crate) fn start(&self) {
        // Split NFS over TCP like any other TCP: what is behind its headers is payload.
        self.write(regs::RFCTL, rfctl::NFSW_DIS | rfctl::NFSR_DIS);
        self.write(regs::TIPG, tipg::DEFAULT);
        self.modify_rctl(
            rctl::LBM_MASK,
            rctl::EN | rctl::BAM | rctl::LPE | rctl::SECRC,
        );
        self.write(regs::TCTL, tctl::DEFAULT | tctl::EN);
    }

    /// Disables the receiver.
    pub(crate) fn stop_receiving(&self) {
        self.modify_rctl(rctl::EN, 0);
    }

    /// Disables the transmitter.
    pub(crate) fn stop_sending(&self) {
        self.write(regs::TCTL, tctl::DEFAULT);
    }

    /// Enables MAC loopback. The link's speed is forced while it is on.
    pub(crate) fn begin_loopback(&self) {
        self.modify_ctrl(
            ctrl::SPEED_MASK,
            ctrl::FRCSPD | ctrl::FRCDPLX | ctrl::SPEED_1000 | ctrl::FD,
        );
        self.modify_rctl(rctl::LBM_MASK, rctl::LBM_MAC);
    }

    /// Disables MAC loopback; the PHY negotiates the speed again.
    pub(crate) fn end_loopback(&self) {
        self.modify_rctl(rctl::LBM_MASK, 0);
        self.modify_ctrl(ctrl::FRCSPD | ctrl::FRCDPLX, 0);
    }
}
