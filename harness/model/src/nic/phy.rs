// SPDX-License-Identifier: MIT OR Apache-2.0

//! The PHY, and the link that it negotiates (82576 datasheet, chapter "PHY Registers"; IEEE 802.3,
//! clause 22). Its identifier and the registers of its maker are those of Linux's `igb`
//! (`IGP03E1000_E_PHY_ID`).

use i82576::regs::{mdic, phy};

/// How long negotiation takes, in nanoseconds. Silicon takes seconds.
const NEGOTIATION: u64 = 20_000_000;

const ID: [u16; 2] = [0x02a8, 0x0391];
/// What the PHY is capable of, in its status register.
const CAPABLE: u16 = 0x7949;
/// Control after a reset.
const CONTROL: u16 = phy::CR_AUTONEG_EN | phy::CR_FULL_DUPLEX | phy::CR_SPEED_1000;
/// Advertisement of 10 and 100 Mb/s after a reset, and what a partner that can do everything says.
const ADVERTISED: u16 = 0x0de1;
const PARTNER: u16 = 0x4de1;
const GIG_ADVERTISED: u16 = 0x0e00;
/// Of a partner that can do 1000 Mb/s, and both receivers are in order.
const GIG_PARTNER: u16 = 0x7c00;

/// The maker's registers: port status, and page select.
const PORT_STATUS: u8 = 0x11;
const PAGE_SELECT: u8 = 0x1f;
/// Port status: the speed, link, and full duplex.
const PORT_1000: u16 = 0xc000;
const PORT_100: u16 = 0x8000;
const PORT_LINK_UP: u16 = 0x0400;
const PORT_FULL: u16 = 0x0200;

/// A link's speed, in Mb/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    M10,
    M100,
    M1000,
}

/// The PHY of the port.
#[derive(Debug)]
pub(crate) struct Phy {
    registers: [u16; 32],
    /// Whether there is a cable, with somebody at the other end.
    cable: bool,
    /// When negotiation ends.
    negotiates_until: Option<u64>,
    link: Option<Speed>,
    /// The link was down since the status was read.
    was_down: bool,
}

impl Phy {
    pub(crate) fn new() -> Self {
        let mut this = Self {
            registers: [0; 32],
            cable: true,
            negotiates_until: None,
            link: None,
            was_down: true,
        };
        this.reset();
        this
    }

    /// Resets the registers. The link is down until negotiation is restarted.
    pub(crate) fn reset(&mut self) {
        self.registers = [0; 32];
        self.registers[usize::from(phy::CONTROL)] = CONTROL;
        [
            self.registers[usize::from(phy::ID1)],
            self.registers[usize::from(phy::ID2)],
        ] = ID;
        self.registers[usize::from(phy::AUTONEG_ADV)] = ADVERTISED;
        self.registers[usize::from(phy::GIG_CONTROL)] = GIG_ADVERTISED;
        self.negotiates_until = None;
        self.lose_link();
    }

    /// Plugs the cable in, or out. Returns whether the link changed.
    pub(crate) fn plug(&mut self, cable: bool, now: u64) -> bool {
        self.cable = cable;
        let had_link = self.link.is_some();
        self.negotiate(now);
        had_link
    }

    /// The link's speed; none while it is down.
    pub(crate) fn link(&self) -> Option<Speed> {
        self.link
    }

    /// Whether what is sent comes back from here.
    pub(crate) fn loops_back(&self) -> bool {
        self.registers[usize::from(phy::CONTROL)] & phy::CR_LOOPBACK != 0
    }

    /// When to call [`Self::elapse`].
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.negotiates_until
    }

    /// Ends negotiation when it is time. Returns whether the link changed.
    pub(crate) fn elapse(&mut self, now: u64) -> bool {
        if self.negotiates_until.is_none_or(|until| now < until) {
            return false;
        }
        self.negotiates_until = None;
        self.link = self.agreed();
        self.link.is_some()
    }

    /// What MDIC reads as, once this was written to it, and whether the link changed.
    pub(crate) fn command(&mut self, command: u32, now: u64) -> (u32, bool) {
        let (address, register) = ((command >> 21) as u8 & 31, (command >> 16) as u8 & 31);
        let done = command | mdic::READY;
        if address != mdic::PHY_ADDRESS {
            return (done | mdic::ERROR, false);
        }
        if command & mdic::OP_WRITE != 0 {
            return (done, self.write(register, command as u16, now));
        }
        (done & !0xffff | u32::from(self.read(register)), false)
    }

    fn read(&mut self, register: u8) -> u16 {
        match register {
            phy::STATUS => {
                let mut status = CAPABLE;
                if self.link.is_some() {
                    status |= phy::SR_AUTONEG_COMPLETE;
                    // It says once that the link was lost.
                    if !std::mem::take(&mut self.was_down) {
                        status |= phy::SR_LINK;
                    }
                }
                status
            }
            phy::LP_ABILITY if self.link.is_some() => PARTNER,
            phy::GIG_STATUS if self.link.is_some() => GIG_PARTNER,
            PORT_STATUS => match self.link {
                None => 0,
                Some(Speed::M1000) => PORT_1000 | PORT_LINK_UP | PORT_FULL,
                Some(Speed::M100) => PORT_100 | PORT_LINK_UP | PORT_FULL,
                Some(Speed::M10) => PORT_LINK_UP | PORT_FULL,
            },
            _ => self.registers[usize::from(register & 31)],
        }
    }

    /// Returns whether the link changed.
    fn write(&mut self, register: u8, value: u16, now: u64) -> bool {
        // Other pages hold what tunes the analogue side.
        let elsewhere = self.registers[usize::from(PAGE_SELECT)] != 0;
        match register {
            phy::STATUS | phy::ID1 | phy::ID2 | phy::LP_ABILITY | phy::GIG_STATUS => false,
            phy::CONTROL if value & phy::CR_RESET != 0 => {
                let had_link = self.link.is_some();
                self.reset();
                self.negotiate(now);
                had_link
            }
            phy::CONTROL => {
                let before = self.registers[0];
                self.registers[0] = value & !phy::CR_RESTART_AUTONEG;
                let changed = (before ^ value) & !phy::CR_RESTART_AUTONEG != 0;
                if value & phy::CR_RESTART_AUTONEG == 0 && !changed {
                    return false;
                }
                let had_link = self.link.is_some();
                self.negotiate(now);
                had_link
            }
            PAGE_SELECT => {
                self.registers[usize::from(PAGE_SELECT)] = value;
                false
            }
            _ if elsewhere => false,
            _ => {
                self.registers[usize::from(register & 31)] = value;
                false
            }
        }
    }

    /// Loses the link, and finds another one after a while.
    fn negotiate(&mut self, now: u64) {
        self.lose_link();
        let somebody = self.cable || self.loops_back();
        let up = somebody && self.registers[0] & phy::CR_POWER_DOWN == 0;
        self.negotiates_until = up.then_some(now + NEGOTIATION);
    }

    fn lose_link(&mut self) {
        self.link = None;
        self.was_down = true;
    }

    /// The fastest that both sides can do, or what is forced.
    fn agreed(&self) -> Option<Speed> {
        let control = self.registers[usize::from(phy::CONTROL)];
        if control & phy::CR_AUTONEG_EN == 0 {
            return Some(match control & (phy::CR_SPEED_1000 | phy::CR_SPEED_100) {
                phy::CR_SPEED_1000 => Speed::M1000,
                phy::CR_SPEED_100 => Speed::M100,
                _ => Speed::M10,
            });
        }
        let slow = self.registers[usize::from(phy::AUTONEG_ADV)];
        let gigabit = self.registers[usize::from(phy::GIG_CONTROL)];
        if gigabit & phy::GIG_FULL != 0 {
            Some(Speed::M1000)
        } else if slow & (phy::ADV_100_FULL | phy::ADV_100_HALF) != 0 {
            Some(Speed::M100)
        } else if slow & (phy::ADV_10_FULL | phy::ADV_10_HALF) != 0 {
            Some(Speed::M10)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(phy: &mut Phy, register: u8, value: u16, now: u64) {
        let (answer, _) = phy.command(mdic::write(register, value), now);
        assert_ne!(mdic::decode(answer), mdic::Outcome::Failed);
    }

    fn read(phy: &mut Phy, register: u8) -> u16 {
        match mdic::decode(phy.command(mdic::read(register), 0).0) {
            mdic::Outcome::Done(value) => value,
            outcome => panic!("{outcome:?}"),
        }
    }

    #[test]
    fn the_link_comes_a_while_after_negotiation_was_restarted() {
        let mut phy = Phy::new();
        assert!(phy.deadline().is_none() && !phy.elapse(u64::MAX));
        write(&mut phy, phy::CONTROL, phy::CR_AUTONEG, 1000);
        assert!(!phy.elapse(1000) && phy.link().is_none());
        assert!(phy.elapse(phy.deadline().unwrap()));
        assert_eq!(phy.link(), Some(Speed::M1000));
        // The loss is reported once.
        assert_eq!(read(&mut phy, phy::STATUS) & phy::SR_LINK, 0);
        assert_ne!(read(&mut phy, phy::STATUS) & phy::SR_LINK, 0);
    }

    #[test]
    fn the_speed_is_the_fastest_that_is_advertised() {
        let mut phy = Phy::new();
        write(&mut phy, phy::GIG_CONTROL, 0, 0);
        write(&mut phy, phy::CONTROL, phy::CR_AUTONEG, 0);
        assert!(phy.elapse(NEGOTIATION));
        assert_eq!(phy.link(), Some(Speed::M100));
        write(&mut phy, phy::AUTONEG_ADV, phy::ADV_10_FULL, 0);
        write(&mut phy, phy::CONTROL, phy::CR_AUTONEG, 0);
        assert!(phy.elapse(NEGOTIATION));
        assert_eq!(phy.link(), Some(Speed::M10));
    }

    #[test]
    fn without_a_cable_there_is_no_link() {
        let mut phy = Phy::new();
        write(&mut phy, phy::CONTROL, phy::CR_AUTONEG, 0);
        phy.elapse(NEGOTIATION);
        assert!(phy.plug(false, 0));
        write(&mut phy, phy::CONTROL, phy::CR_AUTONEG, 0);
        assert!(!phy.elapse(u64::MAX));
        assert_eq!((phy.plug(true, 0), phy.elapse(NEGOTIATION)), (false, true));
    }

    #[test]
    fn no_other_phy_answers() {
        let command = mdic::read(phy::STATUS) ^ 3 << 21;
        let (answer, _) = Phy::new().command(command, 0);
        assert_eq!(mdic::decode(answer), mdic::Outcome::Failed);
    }
}
