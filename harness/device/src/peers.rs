// SPDX-License-Identifier: MIT OR Apache-2.0

//! What devices of this process write to each other's registers.
//!
//! QEMU gives a device no access to the registers of another one that it does not have itself. The process
//! has both. A device writes while it is locked, and what it writes to another device is queued (`turns`). Such
//! writes are posted, so nobody waits for an answer. Reads would have to be answered, and fail.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use model::Fault;

use crate::{
    Port, lock,
    turns::{Turns, deliver},
};

/// Of registers that are nowhere.
const NOWHERE: u64 = u64::MAX;

#[derive(Debug)]
struct Write {
    to: Weak<Port>,
    offset: u64,
    bytes: Vec<u8>,
}

/// The devices that a device can write to, and what it has written.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    all: OnceLock<Vec<Weak<Port>>>,
    queue: Mutex<Turns<VecDeque<Write>>>,
}

/// Lets devices write to each other's registers. Whoever was introduced before stays with those.
pub fn introduce(ports: &[Arc<Port>]) {
    for port in ports {
        let all = ports.iter().map(Arc::downgrade).collect();
        let _ = port.peers().all.set(all);
    }
}

impl Peers {
    /// Takes a write from the device, which is locked.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let mut all = self.all.get().into_iter().flatten();
        let found = all.find_map(|to| {
            let offset = to.upgrade()?.place().offset(address, bytes.len())?;
            Some((to, offset))
        });
        let (to, offset) = found.ok_or(Fault::Unanswered)?;
        lock(&self.queue).queue.push_back(Write {
            to: to.clone(),
            offset,
            bytes: bytes.to_vec(),
        });
        Ok(())
    }

    /// Delivers what the device has written. It must not be locked.
    pub(crate) fn deliver(&self) {
        let carry = |Write { to, offset, bytes }| {
            if let Some(port) = to.upgrade() {
                port.write_registers_by_peer(offset, &bytes);
            }
        };
        deliver(&self.queue, VecDeque::pop_front, carry, |_| ());
    }
}

/// Where a device's registers are, for others to find while they are locked themselves.
#[derive(Debug)]
pub(crate) struct Place {
    base: AtomicU64,
    size: u64,
}

impl Place {
    pub(crate) fn new(size: u32) -> Self {
        Self {
            base: NOWHERE.into(),
            size: size.into(),
        }
    }

    /// The registers answer at this address, or not at all.
    pub(crate) fn set(&self, base: Option<u64>) {
        self.base.store(base.unwrap_or(NOWHERE), Ordering::Relaxed);
    }

    /// Where bytes are in the registers, if all of them are.
    fn offset(&self, address: u64, len: usize) -> Option<u64> {
        let offset = address.checked_sub(self.base.load(Ordering::Relaxed))?;
        let end = offset.checked_add(len as u64)?;
        (end <= self.size).then_some(offset)
    }
}
