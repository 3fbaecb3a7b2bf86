// SPDX-License-Identifier: MIT OR Apache-2.0

//! Serves models of devices to QEMU's `vfio-user-pci`, of a NIC, the Intel 82576, and of an accelerator's
//! engine: what a model is on a bus, and what connects it to others.
//!
//! A [`Port`] is a [`Device`] with all that it shares with QEMU, behind one lock: its configuration space
//! ([`config`]), the memory it reaches ([`dma`]) and its interrupts ([`interrupts`]). [`server`] is QEMU's
//! end of it and [`wire`] the network's; `alarm` gives it the time, and [`control`] tells it to lie, asks what it
//! counted, and pulls its cable. Each
//! has threads of its own. A wire that is not a plain one has a [`link`], and its frames are in `transit`.
//! Through [`peers`] a device writes to another one's registers.

mod alarm;
pub mod config;
pub mod control;
pub mod dma;
mod engine;
mod identity;
pub mod interrupts;
pub mod link;
mod nic;
pub mod pcap;
pub mod peers;
pub mod port;
mod registers;
pub mod server;
mod transit;
mod turns;
pub mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Host, lies::Plan, nic::Accesses};

pub use identity::Identity;
pub use port::Port;

/// A model of a device. One that is no NIC has no use for frames, and not each one lies.
///
/// [`Self::elapse`] is called before each of the others, with the time, and after it, for the deadline.
pub trait Device: Send {
    /// What it is on the bus, always the same.
    fn identity(&self) -> &'static Identity;

    /// Reads a register, by its offset in their BAR, a multiple of four.
    fn read_register(&mut self, offset: u32, host: &mut dyn Host) -> u32;

    /// Writes a register.
    fn write_register(&mut self, offset: u32, value: u32, host: &mut dyn Host);

    /// Another device writes a register.
    fn write_register_by_peer(&mut self, offset: u32, value: u32, host: &mut dyn Host) {
        self.write_register(offset, value, host);
    }

    /// Resets everything, as when power comes.
    fn reset(&mut self);

    /// Takes a frame from the wire, without the frame check sequence. More may follow before
    /// [`Self::elapse`].
    fn receive(&mut self, _frame: &[u8], _host: &mut dyn Host) {}

    /// Has its cable plugged in, or out.
    fn set_cable(&mut self, _cable: bool, _host: &mut dyn Host) {}

    /// Takes a frame whose frame check sequence does not fit it.
    fn receive_damaged(&mut self, _frame: &[u8], _host: &mut dyn Host) {}

    /// Goes to sleep, in D3, or ends that, reset.
    fn set_asleep(&mut self, _asleep: bool) {}

    /// Takes a frame while it sleeps.
    fn receive_asleep(&mut self, _frame: &[u8]) {}

    /// Whether something has woken it since this was last asked.
    fn take_wake(&mut self) -> bool {
        false
    }

    /// Lies from now on as a plan says. Returns how often it told each lie of the plan before.
    fn lie(&mut self, _plan: &Plan) -> Vec<u32> {
        Vec::new()
    }

    /// How often it has told each lie of the plan so far.
    fn told(&self) -> Vec<u32> {
        Vec::new()
    }

    /// How often registers were accessed since this was last asked.
    fn accesses(&mut self) -> Accesses {
        Accesses::default()
    }

    /// Does what is due at a time, in nanoseconds since any moment, which never goes backwards. Returns
    /// when to call it again at the latest.
    fn elapse(&mut self, now: u64, host: &mut dyn Host) -> Option<u64>;
}

/// Locks. What a thread that panicked left behind is used: the process ends on a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
