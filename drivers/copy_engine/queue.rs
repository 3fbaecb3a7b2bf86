// SPDX-License-Identifier: GPL-2.0

//! A work queue and its windows.

use dma_buf::{
    import::Imported,
    portal::Portal, //
};
use engine::regs;
use kernel::{
    device::{
        Bound,
        Device as ParentDevice, //
    },
    devres::Devres,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        CondVarTimeoutResult,
        Mutex, //
    },
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta, //
    }, //
};

use crate::{
    device::Device,
    signal::Bell, //
};

/// How often a queue is looked at until it rests, and the delay in between: half a second in all.
const TRIES: u32 = 5_000;
const PAUSE: Delta = Delta::from_micros(100);

struct State {
    /// Goes first.
    bell: Option<Bell>,
    windows: KVec<Devres<Imported>>,
    running: bool,
}

/// A work queue of a program.
#[pin_data(PinnedDrop)]
pub(crate) struct Queue {
    device: Arc<Device>,
    index: u32,
    portal: Portal,
    #[pin]
    state: Mutex<State>,
}

impl Queue {
    /// Allocates an unused queue.
    ///
    /// # Errors
    ///
    /// Those of [`Device::take_queue`], and `ENOMEM`.
    pub(crate) fn new(device: Arc<Device>) -> Result<Pin<KBox<Self>>> {
        let index = device.take_queue()?;
        let taken = device.clone();

        KBox::pin_init(
            try_pin_init!(Self {
                portal: device.portal(index)?,
                device,
                index,
                state <- new_mutex!(State { bell: None, windows: KVec::new(), running: false }),
            }),
            GFP_KERNEL,
        )
        .inspect_err(|_| taken.release_queue(index))
    }

    /// Imports a dma-buf. Returns the window that it is behind, and its size in bytes.
    ///
    /// # Errors
    ///
    /// `ENOSPC` without a free window, `EOPNOTSUPP` if it is in pieces, and those of [`Imported::new`].
    pub(crate) fn import(&self, parent: &ParentDevice<Bound>, fd: i32) -> Result<(u32, u64)> {
        let mut state = self.state.lock();
        // CAST: There are few.
        let index = state.windows.len() as u32;
        if index == regs::WINDOWS {
            return Err(ENOSPC);
        }
        state.windows.reserve(1, GFP_KERNEL)?;

        // Mapped only before the device is stopped, and so unmapped after that.
        self.device.while_present(|| {
            let imported = Imported::new(parent, fd)?;
            let range = imported.access(parent)?.contiguous();
            let (base, size) = range.ok_or(EOPNOTSUPP)?;
            let window = regs::window(self.index, index);

            state.windows.push(imported, GFP_KERNEL)?;
            for (register, value) in [
                (regs::WINDOW_BASE_LOW, base as u32),
                (regs::WINDOW_BASE_HIGH, (base >> 32) as u32),
                (regs::WINDOW_SIZE_HIGH, (size >> 32) as u32),
                (regs::WINDOW_SIZE_LOW, size as u32),
            ] {
                self.device.write(window + register, value)?;
            }
            Ok((index, size))
        })
    }

    /// Starts the queue with a ring in one of its windows.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it runs, `EINVAL` for a ring that there can't be; one that is not in its window only shows
    /// when the device looks for it.
    pub(crate) fn start(&self, window: u32, size: u32, offset: u64) -> Result {
        let mut state = self.state.lock();

        if state.running {
            return Err(EBUSY);
        }
        // CAST: There are few.
        if window >= state.windows.len() as u32 || size > regs::MAX_RING_SIZE || offset % 64 != 0 {
            return Err(EINVAL);
        }
        self.device.while_present(|| {
            for (register, value) in [
                (regs::RING_WINDOW, window),
                (regs::RING_SIZE, size),
                (regs::RING_OFFSET_LOW, offset as u32),
                (regs::RING_OFFSET_HIGH, (offset >> 32) as u32),
                (regs::CONTROL, regs::CONTROL_ENABLE),
            ] {
                self.device
                    .write(regs::queue(self.index) + register, value)?;
            }
            Ok(())
        })?;
        state.running = true;
        Ok(())
    }

    /// The queue's doorbell.
    pub(crate) fn portal(&self) -> Portal {
        self.portal
    }

    /// Waits until this many descriptors are completed. Returns how many are.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT`, `EINTR`, `EIO` if the queue came to rest by itself, `ENODEV`.
    pub(crate) fn wait(&self, head: u32, timeout_ms: u32) -> Result<u32> {
        let event = self.device.event(self.index)?;
        let mut present = event.present.lock();
        let mut left = msecs_to_jiffies(timeout_ms);
        let mut over = false;

        loop {
            if !*present {
                return Err(ENODEV);
            }
            let completed = self.device.read(regs::portal(self.index) + regs::HEAD)?;
            // CAST: The sign says which is later.
            if completed.wrapping_sub(head) as i32 >= 0 {
                return Ok(completed);
            }
            let status = self.device.read(regs::queue(self.index) + regs::STATUS)?;
            if status & regs::STATUS_BAD_RING != 0 {
                return Err(EIO);
            }
            if over {
                return Err(ETIMEDOUT);
            }
            match event.changed.wait_interruptible_timeout(&mut present, left) {
                CondVarTimeoutResult::Woken { jiffies } => left = jiffies,
                // The interrupt may have been lost: look once more.
                CondVarTimeoutResult::Timeout => over = true,
                CondVarTimeoutResult::Signal { .. } => return Err(EINTR),
            }
        }
    }

    /// Has a TX queue of a NIC withhold what is sent from now on, until the queue rings for it.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the queue rings for another one, and those of [`Bell::new`] and [`Bell::hold`].
    pub(crate) fn hold(&self, parent: &ParentDevice<Bound>, nic: u32, queue: u32) -> Result {
        let mut state = self.state.lock();

        match &state.bell {
            Some(bell) if bell.is_of(nic, queue) => bell.hold(),
            Some(_) => Err(EBUSY),
            None => self.device.while_present(|| {
                let bell = Bell::new(&self.device, parent, self.index, nic, queue)?;

                state.bell.insert(bell).hold()
            }),
        }
    }

    /// Has the next descriptor that signals ring for what is withheld by now.
    ///
    /// # Errors
    ///
    /// `ENOTCONN` if nothing is held, and those of [`Bell::arm`].
    pub(crate) fn arm(&self) -> Result {
        self.state.lock().bell.as_ref().ok_or(ENOTCONN)?.arm()
    }

    /// Stops the queue, and waits until it does no DMA.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT`: it still may.
    pub(crate) fn stop(&self) -> Result {
        let mut state = self.state.lock();

        if state.running {
            self.rest()?;
            state.running = false;
        }
        Ok(())
    }

    /// Disables the queue, and waits until it rests. A device that is stopped or gone does.
    fn rest(&self) -> Result {
        let queue = regs::queue(self.index);
        let mut gone = true;

        for _ in 0..TRIES {
            // Again and again, as a device that lies may have lost it.
            let Ok(status) = self
                .device
                .write(queue + regs::CONTROL, 0)
                .and_then(|()| self.device.read(queue + regs::STATUS))
            else {
                return Ok(());
            };
            if status & regs::STATUS_RUNNING == 0 {
                return Ok(());
            }
            gone &= status == u32::MAX;
            fsleep(PAUSE);
        }
        // All ones for all that time: it is gone from the bus. Once is not enough, because memory that
        // it reaches is then freed.
        if gone {
            return Ok(());
        }
        Err(ETIMEDOUT)
    }
}

#[pinned_drop]
impl PinnedDrop for Queue {
    fn drop(self: Pin<&mut Self>) {
        let mut state = self.state.lock();

        state.bell = None;
        if state.running && self.rest().is_err() {
            // What it reaches must stay as it is, and it has no other user.
            pr_err!(
                "queue {} does not come to rest: its memory is leaked\n",
                self.index
            );
            core::mem::forget(core::mem::take(&mut state.windows));
            return;
        }
        // CAST: There are few.
        for window in 0..state.windows.len() as u32 {
            let size = regs::window(self.index, window) + regs::WINDOW_SIZE_LOW;

            // Only an unbound device refuses, and that has none.
            let _ = self.device.write(size, 0);
        }
        state.windows.clear();
        drop(state);
        self.device.release_queue(self.index);
    }
}
