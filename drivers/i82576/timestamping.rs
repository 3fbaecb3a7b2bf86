// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Which frames get a timestamp of the system time (82576 datasheet, chapter "Time SYNC").
//!
//! The device takes one timestamp at a time for each direction: it stays in its register, and no
//! other is taken, until it is read. A transmitted frame gets one if its descriptor asks for it.
//! Received frames that get one are messages of the Precision Time Protocol (IEEE 1588-2008).

use crate::regs::{
    etqf,
    tsyncrxcfg,
    tsyncrxctl,
    tsynctxctl, //
};

/// The EtherType of PTP messages.
pub const ETHERTYPE: u16 = 0x88f7;

/// The EtherType filter that matches them.
pub const FILTER: u16 = 3;

/// The received messages that get a timestamp, of PTP version 2 over Ethernet.
///
/// Those over UDP would need a five-tuple filter.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Messages {
    /// None.
    #[default]
    None,
    /// Sync.
    Sync,
    /// Delay_Req.
    DelayReq,
    /// All event messages. QEMU's model timestamps Sync messages only.
    Event,
}

/// Which frames get a timestamp.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Timestamping {
    /// Transmitted frames whose descriptor asks for one.
    pub tx: bool,
    /// Received messages.
    pub rx: Messages,
}

/// The types of messages, as on the wire.
const SYNC: u32 = 0;
const DELAY_REQ: u32 = 1;

impl Timestamping {
    /// The value of TSYNCTXCTL.
    pub const fn tsynctxctl(&self) -> u32 {
        if self.tx {
            tsynctxctl::ENABLE
        } else {
            0
        }
    }

    /// The value of TSYNCRXCTL.
    pub const fn tsyncrxctl(&self) -> u32 {
        match self.rx {
            Messages::None => 0,
            Messages::Sync | Messages::DelayReq => tsyncrxctl::ENABLE | tsyncrxctl::TYPE_L2_V2,
            Messages::Event => tsyncrxctl::ENABLE | tsyncrxctl::TYPE_EVENT_V2,
        }
    }

    /// The value of TSYNCRXCFG.
    pub const fn tsyncrxcfg(&self) -> u32 {
        let message = match self.rx {
            Messages::None | Messages::Sync | Messages::Event => SYNC,
            Messages::DelayReq => DELAY_REQ,
        };

        message << tsyncrxcfg::MESSAGE_V2_SHIFT
    }

    /// The value of ETQF[[`FILTER`]].
    pub const fn etqf(&self) -> u32 {
        match self.rx {
            Messages::None => 0,
            _ => etqf::ENABLE | etqf::TIMESTAMP | (ETHERTYPE as u32) << etqf::TYPE_SHIFT,
        }
    }
}
