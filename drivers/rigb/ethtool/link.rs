// SPDX-License-Identifier: GPL-2.0

//! The link: what is negotiated, and flow control.
//!
//! 1000BASE-T requires autonegotiation, so the driver always uses it, and advertises fewer modes if
//! the user requests a lower speed. Flow control is not negotiated: it is as the user sets it.

use i82576::regs::phy;
use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        Duplex,
        FlowControl,
        Link,
        LinkModes,
        LinkRequest,
        LinkSettings,
        Pause,
        Port,
        Speed, //
    },
};

use crate::{
    hw::Advertised,
    netdev::{
        Adapter,
        Control, //
    }, //
};

/// Modes of 10 and 100 Mb/s and their bits, the same in [`phy::AUTONEG_ADV`] and
/// [`phy::LP_ABILITY`].
const MODES: [(LinkModes, u16); 4] = [
    (LinkModes::MODE_10baseT_Half, phy::ADV_10_HALF),
    (LinkModes::MODE_10baseT_Full, phy::ADV_10_FULL),
    (LinkModes::MODE_100baseT_Half, phy::ADV_100_HALF),
    (LinkModes::MODE_100baseT_Full, phy::ADV_100_FULL),
];

/// Properties other than speed and duplex, which never change.
const FIXED: LinkModes = LinkModes::MODE_Autoneg.with(LinkModes::MODE_TP);

/// The modes whose bits are set in the registers of one side.
fn modes(slow: u16, gigabit: bool) -> LinkModes {
    let first = if gigabit {
        LinkModes::MODE_1000baseT_Full
    } else {
        LinkModes::NONE
    };

    MODES.into_iter().fold(first, |modes, (mode, bit)| {
        if slow & bit != 0 {
            modes.with(mode)
        } else {
            modes
        }
    })
}

#[vtable]
impl<'bound> LinkSettings for Adapter<'bound> {
    fn link(dev: Locked<'_, Self>, _control: &mut Control) -> Result<Link> {
        let hw = &dev.device().driver().hw;
        let now = hw.negotiation()?;
        let speed = hw.link_speed().map(|(mbps, full_duplex)| Speed {
            mbps,
            duplex: if full_duplex {
                Duplex::Full
            } else {
                Duplex::Half
            },
            lanes: None,
        });

        Ok(Link {
            speed,
            port: Port::TwistedPair,
            autoneg: true,
            supported: modes(u16::MAX, true).with(FIXED),
            advertised: modes(now.own.slow, now.own.gigabit & phy::GIG_FULL != 0).with(FIXED),
            partner: modes(
                now.partner.slow,
                now.partner.gigabit & phy::GIG_PARTNER_FULL != 0,
            ),
        })
    }

    fn set_link(dev: Locked<'_, Self>, control: &mut Control, request: LinkRequest) -> Result {
        let LinkRequest::Negotiate(wanted) = request else {
            return Err(EOPNOTSUPP);
        };
        let slow = MODES
            .into_iter()
            .filter(|(mode, _)| wanted.contains(*mode))
            .fold(0, |bits, (_, bit)| bits | bit);
        let gigabit = if wanted.contains(LinkModes::MODE_1000baseT_Full) {
            phy::GIG_FULL
        } else {
            0
        };

        if slow == 0 && gigabit == 0 {
            return Err(EINVAL);
        }
        let modes = Advertised { slow, gigabit };
        dev.device().driver().hw.advertise(modes)?;
        control.advertised = Some(modes);
        look_at_link(dev);
        Ok(())
    }

    fn restart_autoneg(dev: Locked<'_, Self>, _control: &mut Control) -> Result {
        dev.device().driver().hw.restart_autoneg()?;
        look_at_link(dev);
        Ok(())
    }
}

#[vtable]
impl<'bound> FlowControl for Adapter<'bound> {
    fn pause(control: &Control) -> Pause {
        control.pause
    }

    fn set_pause(dev: Locked<'_, Self>, control: &mut Control, pause: Pause) -> Result {
        if pause.autoneg {
            return Err(EOPNOTSUPP);
        }
        control.pause = pause;
        dev.device()
            .driver()
            .hw
            .set_flow_control(pause.rx, pause.tx);
        Ok(())
    }
}

/// Reports the loss of the link when negotiation restarts: QEMU's model raises no interrupt
/// for that, only when the link is there.
fn look_at_link(dev: Locked<'_, Adapter<'_>>) {
    let hw = &dev.device().driver().hw;

    if !dev.is_running() {
        return;
    }
    dev.device().set_carrier(hw.link_is_up());
    // Its interrupt may have come between the two.
    if hw.link_is_up() {
        dev.device().set_carrier(true);
    }
}
