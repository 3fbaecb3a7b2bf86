// SPDX-License-Identifier: GPL-2.0

//! AF_XDP zero copy: attaches pools to single queues, and detaches them.
//!
//! A pool belongs to the queue pair's NAPI. The pair gets new rings when a pool is attached or
//! detached; others are not disturbed. While there is one, header split is off, so no queue can be
//! bound.

use i82576::limits;
use kernel::prelude::*;
use net::{
    device::Locked,
    xdp::Xsk, //
};

use crate::netdev::{
    Adapter,
    Control,
    Pending,
    Rings, //
};

/// Queues that have an AF_XDP pool: the size of its frames, in bytes.
pub(crate) struct XskQueues([Option<u32>; limits::MAX_RX_QUEUES as usize]);

impl XskQueues {
    /// None.
    pub(crate) const NONE: Self = Self([None; limits::MAX_RX_QUEUES as usize]);

    /// Returns whether queue `index` has a pool.
    pub(crate) fn has(&self, index: u16) -> bool {
        self.0.get(usize::from(index)).is_some_and(Option::is_some)
    }

    /// Returns whether any has one.
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Returns whether frames fit all pools when the longest packet has `mtu` bytes.
    pub(crate) fn fit(&self, mtu: u32) -> bool {
        self.0.iter().flatten().all(|&size| fits(size, mtu))
    }

    fn set(&mut self, index: u16, size: Option<u32>) {
        if let Some(place) = self.0.get_mut(usize::from(index)) {
            *place = size;
        }
    }
}

/// The device writes the frame check sequence before it strips it.
fn fits(frame_size: u32, mtu: u32) -> bool {
    limits::frame_len(mtu) + limits::FRAME_CHECK <= frame_size
}

impl<'bound> Xsk for Adapter<'bound> {
    const RX_DESCRIPTORS: u32 = limits::RING_MAX as u32;

    fn set_pool(
        dev: Locked<'_, Self>,
        control: &mut Control,
        queue: u32,
        frame_size: u32,
    ) -> Result {
        let index = match u16::try_from(queue) {
            Ok(index) if index < control.in_use => index,
            _ => return Err(EINVAL),
        };

        if control.settings.split {
            return Err(EBUSY);
        }
        if !fits(frame_size, control.settings.mtu) {
            return Err(EINVAL);
        }

        // A reset that is needed because this fails makes ordinary rings.
        control.xsk.set(index, Some(frame_size));
        rings(dev, control, index)
            .and_then(|rings| replace(dev, index, rings))
            .inspect_err(|_| control.xsk.set(index, None))
    }

    fn clear_pool(dev: Locked<'_, Self>, control: &mut Control, queue: u32) -> Result {
        let index = u16::try_from(queue)?;
        let adapter = dev.device().driver();
        let leaked = adapter.hw.leaked_rings();

        control.xsk.set(index, None);
        match rings(dev, control, index) {
            // If it does not start, the memory is free all the same.
            Ok(rings) => _ = replace(dev, index, rings),
            Err(error) => {
                Adapter::halt_pairs(dev, index..index + 1, Pending::Send);
                leave(dev, index, error);
            }
        }
        if adapter.hw.leaked_rings() == leaked {
            Ok(())
        } else {
            Err(EIO)
        }
    }

    fn wake(&self, queue: u32) -> Result {
        self.schedulers
            .get(queue as usize)
            .ok_or(EINVAL)?
            .schedule();
        Ok(())
    }
}

/// New rings for a queue pair, if the interface is up.
fn rings<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    control: &Control,
    index: u16,
) -> Result<Option<Rings<'bound>>> {
    dev.is_running()
        .then(|| Rings::new(dev, control, index..index + 1, &control.settings))
        .transpose()
}

/// Stops a queue pair, and starts it again if there are rings for it.
fn replace<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    index: u16,
    rings: Option<Rings<'bound>>,
) -> Result {
    Adapter::halt_pairs(dev, index..index + 1, Pending::Send);
    let Some(rings) = rings else {
        return Ok(());
    };

    Adapter::start_pairs(dev, rings).inspect_err(|&error| leave(dev, index, error))?;
    dev.device().driver().poll_pairs(index..index + 1);
    Ok(())
}

/// Leaves a queue pair that is halted to a reset, which starts it with the others.
fn leave(dev: Locked<'_, Adapter<'_>>, index: u16, error: Error) {
    dev_err!(
        dev.device().driver().parent,
        "queue {index} does not run until the device has been reset: {error:?}\n"
    );
    Adapter::unlist_pairs(dev, index..index + 1);
    dev.device().schedule_tx_timeout();
}
