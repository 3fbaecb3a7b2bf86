// SPDX-License-Identifier: GPL-2.0

//! The link: PHY, flow control, and the port's LEDs.

use i82576::{
    limits,
    regs::{
        self,
        fc,
        ledctl,
        mdic,
        phy, //
    }, //
};
use kernel::prelude::*;

use super::{
    semaphore::PhyLock,
    Hw,
    GONE, //
};

/// The modes that a side advertises: bits of the PHY's registers, which differ for the two sides.
#[derive(Copy, Clone, PartialEq)]
pub(crate) struct Advertised {
    /// 10 and 100 Mb/s.
    pub(crate) slow: u16,
    /// 1000 Mb/s.
    pub(crate) gigabit: u16,
}

/// The modes that the two sides advertise.
pub(crate) struct Negotiation {
    pub(crate) own: Advertised,
    /// Empty while that is not known.
    pub(crate) partner: Advertised,
}

impl Hw<'_> {
    /// Waits for the end of an operation on the PHY.
    fn phy_wait(&self) -> Result<u16> {
        self.wait(regs::MDIC, |value| value & mdic::READY != 0)?;
        match mdic::decode(self.read(regs::MDIC)) {
            mdic::Outcome::Done(value) => Ok(value),
            _ => Err(EIO),
        }
    }

    pub(super) fn phy_write(&self, register: u8, value: u16) -> Result {
        let _phy = PhyLock::acquire(self)?;

        self.write(regs::MDIC, mdic::write(register, value));
        self.phy_wait().map(|_| ())
    }

    fn phy_read(&self, register: u8) -> Result<u16> {
        let _phy = PhyLock::acquire(self)?;

        self.write(regs::MDIC, mdic::read(register));
        self.phy_wait()
    }

    /// Restarts autonegotiation.
    pub(crate) fn restart_autoneg(&self) -> Result {
        self.phy_write(phy::CONTROL, phy::CR_AUTONEG)
    }

    /// Advertises these speeds, and restarts autonegotiation.
    pub(crate) fn advertise(&self, modes: Advertised) -> Result {
        self.phy_write(phy::AUTONEG_ADV, modes.slow | phy::ADV_IEEE_802_3)?;
        self.phy_write(phy::GIG_CONTROL, modes.gigabit)?;
        self.restart_autoneg()
    }

    /// Advertises these speeds again, if a reset of the PHY has changed that.
    pub(crate) fn keep_advertising(&self, modes: Advertised) -> Result {
        let now = self.advertised()?;

        if now == modes {
            Ok(())
        } else {
            self.advertise(modes)
        }
    }

    /// The modes that this side advertises.
    fn advertised(&self) -> Result<Advertised> {
        Ok(Advertised {
            slow: self.phy_read(phy::AUTONEG_ADV)? & !phy::ADV_IEEE_802_3,
            gigabit: self.phy_read(phy::GIG_CONTROL)?,
        })
    }

    /// What was negotiated.
    pub(crate) fn negotiation(&self) -> Result<Negotiation> {
        let known = self.phy_read(phy::STATUS)? & phy::SR_AUTONEG_COMPLETE != 0;
        let partner = |register| {
            if known {
                self.phy_read(register)
            } else {
                Ok(0)
            }
        };

        Ok(Negotiation {
            own: self.advertised()?,
            partner: Advertised {
                slow: partner(phy::LP_ABILITY)?,
                gigabit: partner(phy::GIG_STATUS)?,
            },
        })
    }

    /// Speed in Mb/s, and whether duplex is full, of a link that is up.
    pub(crate) fn link_speed(&self) -> Option<(u32, bool)> {
        let status = self.read(regs::STATUS);

        (status != GONE && status & regs::status::LU != 0)
            .then(|| (regs::status::speed(status), status & regs::status::FD != 0))
    }

    /// Honours pause frames, and sends some when the packet buffer fills up. As queues drop packets that
    /// they have no descriptor for, that only happens when the bus does not keep up.
    pub(crate) fn set_flow_control(&self, rx: bool, tx: bool) {
        let (low, high) = if tx {
            fc::thresholds(limits::MAX_FRAME)
        } else {
            (0, 0)
        };
        let bit = |wanted, bit| if wanted { bit } else { 0 };

        self.write(regs::FCAL, fc::ADDRESS_LOW);
        self.write(regs::FCAH, fc::ADDRESS_HIGH);
        self.write(regs::FCT, fc::ETHERTYPE);
        self.write(regs::FCTTV, fc::PAUSE_TIME);
        self.write(regs::FCRTV, fc::PAUSE_TIME / 2);
        self.write(regs::FCRTL, low);
        self.write(regs::FCRTH, high);
        self.modify_ctrl(
            regs::ctrl::RFCE | regs::ctrl::TFCE,
            bit(rx, regs::ctrl::RFCE) | bit(tx, regs::ctrl::TFCE),
        );
    }

    /// Writes the flow control bits of CTRL again: in QEMU's model, negotiation sets both when the
    /// link comes up.
    pub(crate) fn restore_flow_control(&self) {
        self.modify_ctrl(0, 0);
    }

    /// The mode of the port's LEDs.
    pub(crate) fn lights(&self) -> u32 {
        self.read(regs::LEDCTL)
    }

    /// Turns all LEDs of the port on or off.
    pub(crate) fn set_lights(&self, on: bool) {
        self.write(regs::LEDCTL, ledctl::all(on));
    }

    /// Restores the mode of the port's LEDs.
    pub(crate) fn restore_lights(&self, saved: u32) {
        self.write(regs::LEDCTL, saved);
    }
}
