// SPDX-License-Identifier: MIT OR Apache-2.0

//! The Intel 82576, a port of it, by its datasheet. Where that is silent, Linux's C driver `igb` and QEMU's
//! model are followed, which is said where it is done.
//!
//! [`Nic::read`] and [`Nic::write`] are its registers (`access`), [`Nic::receive`] is its end of the wire.
//! `port` has what concerns the port as a whole, `receive` and `transmit` the way of frames.

mod access;
mod accesses;
mod checksum;
mod clock;
mod interrupts;
mod lent;
mod lies;
mod nvm;
mod phy;
mod port;
mod receive;
mod registers;
mod ring;
mod statistics;
#[cfg(test)]
mod tests;
mod transmit;
mod violation;
mod wake;

use std::collections::VecDeque;

use i82576::limits::{MAX_RX_QUEUES, MAX_TX_QUEUES};

pub use self::{
    accesses::Accesses,
    violation::{Violation, What},
};
use self::{
    clock::Clock, interrupts::Interrupts, lent::Lent, nvm::Nvm, phy::Phy, registers::Registers,
    violation::Record,
};
use crate::lies::Lies;
pub use crate::lies::{Kind, Lie, Plan};

/// A port of an 82576.
#[derive(Debug)]
pub struct Nic {
    registers: Registers,
    nvm: Nvm,
    phy: Phy,
    /// The link as it was last reported to the driver.
    had_link: bool,
    clock: Clock,
    interrupts: Interrupts,
    rx: [receive::Queue; MAX_RX_QUEUES as usize],
    tx: [transmit::Queue; MAX_TX_QUEUES as usize],
    /// When queues that are being disabled have come to rest.
    rx_rests: [Option<u64>; MAX_RX_QUEUES as usize],
    tx_rests: [Option<u64>; MAX_TX_QUEUES as usize],
    /// The memory that is lent to queues.
    lent: Lent,
    /// The limits of transmit queues.
    rates: transmit::Rates,
    /// When what is filled is written back at the latest.
    write_back: Option<u64>,
    /// Until when the other side wants silence.
    paused: Option<u64>,
    /// When the other side is asked for silence once more, if it was asked.
    silence: Option<u64>,
    /// The packet buffer: frames that wait for a descriptor.
    waiting: VecDeque<receive::Waiting>,
    now: u64,
    /// Whether it sleeps, in D3, and whether something has woken it.
    asleep: bool,
    wakes: bool,
    accesses: Accesses,
    record: Record,
    lies: Lies,
    /// When a cable that a lie has pulled out is plugged in again.
    replug: Option<u64>,
}
