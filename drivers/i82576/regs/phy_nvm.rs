// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The way to the PHY (MDIC) and to the EEPROM (EERD).

use super::Reg;

/// EEPROM and flash control; bits in [`eecd`].
pub const EECD: Reg = Reg(0x00010);
/// EEPROM read; see [`eerd`].
pub const EERD: Reg = Reg(0x00014);
/// MDI control, the access to PHY registers; see [`mdic`].
pub const MDIC: Reg = Reg(0x00020);
/// Management EEPROM control; bits in [`eemngctl`].
pub const EEMNGCTL: Reg = Reg(0x01010);

/// EEPROM and flash control.
pub mod eecd {
    /// An EEPROM is present.
    pub const PRES: u32 = 1 << 8;
    /// The device has read its EEPROM after a reset.
    pub const AUTO_RD: u32 = 1 << 9;
}

/// Management EEPROM control.
pub mod eemngctl {
    /// The PHY of port 0 is configured after a reset.
    pub const CFG_DONE0: u32 = 1 << 18;
    /// The PHY of port 1 is configured after a reset.
    pub const CFG_DONE1: u32 = 1 << 19;
}

/// EEPROM read: write [`eerd::read`], poll for [`eerd::DONE`], take [`eerd::data`].
pub mod eerd {
    /// Start reading.
    pub const START: u32 = 1 << 0;
    /// The word has been read.
    pub const DONE: u32 = 1 << 1;

    /// The command that reads 16-bit word `word`, 0..0x4000.
    #[inline]
    pub const fn read(word: u16) -> u32 {
        (word as u32 & 0x3fff) << 2 | START
    }

    /// The word, once the register's value has [`DONE`] set.
    #[inline]
    pub const fn data(value: u32) -> Option<u16> {
        if value & DONE != 0 {
            Some((value >> 16) as u16)
        } else {
            None
        }
    }
}

/// MDI control: write [`mdic::read`] or [`mdic::write`], then poll and hand the value to
/// [`mdic::decode`].
pub mod mdic {
    /// Address of the internal PHY.
    pub const PHY_ADDRESS: u8 = 1;
    /// Operation: write.
    pub const OP_WRITE: u32 = 1 << 26;
    /// Operation: read.
    pub const OP_READ: u32 = 1 << 27;
    /// The operation is done.
    pub const READY: u32 = 1 << 28;
    /// Interrupt when the operation is done.
    pub const INT_EN: u32 = 1 << 29;
    /// The operation failed.
    pub const ERROR: u32 = 1 << 30;

    /// The state that a polled value of the register shows.
    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    pub enum Outcome {
        /// Not done yet.
        Busy,
        /// Done; the data of a read, or what was written.
        Done(u16),
        /// The PHY did not answer.
        Failed,
    }

    const fn target(register: u8) -> u32 {
        (PHY_ADDRESS as u32) << 21 | (register as u32 & 0x1f) << 16
    }

    /// The command that reads PHY register `register`, 0..32.
    #[inline]
    pub const fn read(register: u8) -> u32 {
        OP_READ | target(register)
    }

    /// The command that writes `data` to PHY register `register`, 0..32.
    #[inline]
    pub const fn write(register: u8, data: u16) -> u32 {
        OP_WRITE | target(register) | data as u32
    }

    /// The state of the operation that was started, from the register's value.
    #[inline]
    pub const fn decode(value: u32) -> Outcome {
        if value & READY == 0 {
            Outcome::Busy
        } else if value & ERROR != 0 {
            Outcome::Failed
        } else {
            Outcome::Done(value as u16)
        }
    }
}

/// PHY registers (IEEE 802.3 clause 22) and their bits.
pub mod phy {
    /// Control.
    pub const CONTROL: u8 = 0;
    /// Status. The link bit latches a loss until it is read.
    pub const STATUS: u8 = 1;
    /// Identifier, high.
    pub const ID1: u8 = 2;
    /// Identifier, low.
    pub const ID2: u8 = 3;
    /// Autonegotiation advertisement.
    pub const AUTONEG_ADV: u8 = 4;
    /// Link partner ability.
    pub const LP_ABILITY: u8 = 5;
    /// 1000BASE-T control.
    pub const GIG_CONTROL: u8 = 9;
    /// 1000BASE-T status.
    pub const GIG_STATUS: u8 = 10;

    /// Control: speed 1000 Mb/s, with [`CR_SPEED_100`] clear.
    pub const CR_SPEED_1000: u16 = 0x0040;
    /// Control: full duplex.
    pub const CR_FULL_DUPLEX: u16 = 0x0100;
    /// Control: restart autonegotiation; clears itself.
    pub const CR_RESTART_AUTONEG: u16 = 0x0200;
    /// Control: power down.
    pub const CR_POWER_DOWN: u16 = 0x0800;
    /// Control: autonegotiation enabled.
    pub const CR_AUTONEG_EN: u16 = 0x1000;
    /// Control: speed 100 Mb/s, with [`CR_SPEED_1000`] clear.
    pub const CR_SPEED_100: u16 = 0x2000;
    /// Control: loopback.
    pub const CR_LOOPBACK: u16 = 0x4000;
    /// Control: reset; clears itself.
    pub const CR_RESET: u16 = 0x8000;

    /// Advertisement: this is IEEE 802.3.
    pub const ADV_IEEE_802_3: u16 = 0x0001;
    /// Advertisement and partner's ability: 10 Mb/s, half duplex.
    pub const ADV_10_HALF: u16 = 0x0020;
    /// Advertisement and partner's ability: 10 Mb/s, full duplex.
    pub const ADV_10_FULL: u16 = 0x0040;
    /// Advertisement and partner's ability: 100 Mb/s, half duplex.
    pub const ADV_100_HALF: u16 = 0x0080;
    /// Advertisement and partner's ability: 100 Mb/s, full duplex.
    pub const ADV_100_FULL: u16 = 0x0100;

    /// 1000BASE-T control: advertise full duplex.
    pub const GIG_FULL: u16 = 0x0200;
    /// 1000BASE-T status: the partner can do full duplex.
    pub const GIG_PARTNER_FULL: u16 = 0x0800;

    /// Status: link is up.
    pub const SR_LINK: u16 = 0x0004;
    /// Status: autonegotiation is complete.
    pub const SR_AUTONEG_COMPLETE: u16 = 0x0020;

    /// The value of [`CONTROL`] that restarts autonegotiation. After CTRL.RST the link of QEMU's
    /// model stays down until this is written.
    pub const CR_AUTONEG: u16 = CR_AUTONEG_EN | CR_RESTART_AUTONEG | CR_FULL_DUPLEX | CR_SPEED_1000;
}
