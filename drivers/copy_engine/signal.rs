// SPDX-License-Identifier: GPL-2.0

//! The signal of a work queue: it rings for a TX queue of a NIC.

use dma_buf::register::PeerRegister;
use doorbell::{
    Ringer,
    Taken, //
};
use engine::regs;
use kernel::{
    device::{
        Bound,
        Device as ParentDevice, //
    },
    devres::Devres,
    prelude::*,
    sync::Arc, //
};

use crate::{
    device::Device,
    nics, //
};

/// A queue's signal, with the address of a doorbell.
struct Signal {
    device: Arc<Device>,
    queue: u32,
}

impl Ringer for Signal {
    fn arm(&self, tail: u32) -> Result {
        self.device
            .write(regs::queue(self.queue) + regs::SIGNAL_VALUE, tail)
    }

    fn disarm(&self) -> bool {
        let status = regs::queue(self.queue) + regs::SIGNAL_STATUS;

        self.device
            .write(status, 0)
            .and_then(|()| self.device.read(status))
            // One that is not bound any more was reset long since.
            .is_ok_and(|status| status & regs::SIGNAL_SENT != 0)
    }
}

/// A doorbell that a queue's signal rings. It is released before it is unmapped.
pub(crate) struct Bell {
    nic: u32,
    queue: u32,
    taken: Taken,
    _register: Devres<PeerRegister>,
}

impl Bell {
    /// That of TX queue `queue` of NIC `nic`, for the work queue `of`, whose signal must not be armed.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no such NIC, and those of [`PeerRegister::new`] and
    /// [`Doorbells::take`](doorbell::Doorbells::take).
    pub(crate) fn new(
        device: &Arc<Device>,
        parent: &ParentDevice<Bound>,
        of: u32,
        nic: u32,
        queue: u32,
    ) -> Result<Self> {
        nics::with(nic, |doorbells| {
            let register = doorbells.register(queue)?;
            let register = PeerRegister::new(parent, &doorbells.pdev, register)?;
            let address = register.access(parent)?.address();

            for (register, value) in [
                (regs::SIGNAL_LOW, address as u32),
                (regs::SIGNAL_HIGH, (address >> 32) as u32),
            ] {
                device.write(regs::queue(of) + register, value)?;
            }
            let signal = Signal {
                device: device.clone(),
                queue: of,
            };
            Ok(Self {
                nic,
                queue,
                taken: doorbells.take(queue, Arc::new(signal, GFP_KERNEL)?)?,
                _register: register,
            })
        })
    }

    /// Whether it is that of this TX queue.
    pub(crate) fn is_of(&self, nic: u32, queue: u32) -> bool {
        (self.nic, self.queue) == (nic, queue)
    }

    /// See [`Taken::hold`].
    pub(crate) fn hold(&self) -> Result {
        self.taken.hold()
    }

    /// See [`Taken::arm`].
    pub(crate) fn arm(&self) -> Result {
        self.taken.arm()
    }
}
