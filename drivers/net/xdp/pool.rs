// SPDX-License-Identifier: GPL-2.0

//! The memory of AF_XDP sockets, as one queue has it.
//!
//! Its user can write to all of it at any time, and can give the same buffer twice: what is in it is
//! read once, and a buffer is an address here, never a reference.
//!
//! C header: `include/net/xsk_buff_pool.h`

use core::{
    cell::Cell,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    Frame,
    Program,
    Verdict,
    Xdp, //
};
use crate::{
    device::{
        Driver,
        Locked, //
    },
    napi::Receive,
    skb::RxSkb, //
};

/// A frame that a socket wants sent.
#[derive(Copy, Clone)]
pub struct XskFrame {
    /// DMA address.
    pub address: u64,
    /// Length in bytes.
    pub len: u32,
    /// What goes to [`Pool::completed`] when it was sent.
    pub entries: u32,
}

/// The pools of a NAPI's queues, which belong to whom the NAPI's state does.
pub(crate) struct Pools(KVec<(u32, Pool)>);

impl Pools {
    pub(crate) const fn new() -> Self {
        Self(KVec::new())
    }

    pub(crate) fn get(&self, queue: u32) -> Option<&Pool> {
        let mut pools = self.0.iter();

        pools.find_map(|(of, pool)| (*of == queue).then_some(pool))
    }

    /// # Errors
    ///
    /// `ENOMEM`; `pool` is dropped.
    pub(super) fn put(&mut self, queue: u32, pool: Pool) -> Result {
        Ok(self.0.push((queue, pool), GFP_KERNEL)?)
    }

    pub(super) fn take(&mut self, queue: u32) -> Option<Pool> {
        let at = self.0.iter().position(|(of, _)| *of == queue)?;

        self.0.remove(at).ok().map(|(_, pool)| pool)
    }
}

/// The memory of an AF_XDP socket, as the queue has it that the socket is bound to.
///
/// It belongs to the NAPI that polls the queue: a driver borrows it
/// ([`Completion::pool`](crate::napi::Completion::pool),
/// [`Disabled::pool`](crate::napi::Disabled::pool)). Dropping it ends its DMA: no queue may know of
/// its buffers any more.
///
/// # Invariants
///
/// - The core has bound `raw` to the queue, and it is mapped for the device.
/// - `info` is registered, and is what the pool's buffers refer to.
/// - Each of `slots` is null or a buffer of the pool that the core has not got back.
pub struct Pool {
    raw: NonNull<bindings::xsk_buff_pool>,
    info: KBox<bindings::xdp_rxq_info>,
    /// What the device may write, by the descriptor.
    slots: KVVec<Cell<*mut bindings::xdp_buff>>,
    /// Of what is to be sent, entries that the device has.
    in_flight: Cell<u32>,
    /// Entries that nobody sends, after those.
    skipped: Cell<u32>,
    leaked: bool,
}

// SAFETY: A pool may be used by any one thread at a time.
unsafe impl Send for Pool {}

impl Pool {
    /// For an RX ring of at most so many descriptors.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `raw` must be a pool that the core is about to bind to queue `queue`, and that lives until the
    /// result is dropped, under the lock.
    pub(super) unsafe fn new<T: Driver>(
        dev: Locked<'_, T>,
        raw: *mut bindings::xsk_buff_pool,
        queue: u16,
        descriptors: u32,
    ) -> Result<Self> {
        let mut slots = KVVec::with_capacity(descriptors as usize, GFP_KERNEL)?;
        let mut info = KBox::new(pin_init::zeroed::<bindings::xdp_rxq_info>(), GFP_KERNEL)?;

        for _ in 0..descriptors {
            slots.push(Cell::new(core::ptr::null_mut()), GFP_KERNEL)?;
        }
        // SAFETY: The device is valid; it outlives what is bound to its queues.
        to_result(unsafe {
            bindings::__xdp_rxq_info_reg(&mut *info, dev.device().as_raw(), queue.into(), 0, 0)
        })?;
        // SAFETY: Registered above; this kind needs nothing else.
        let mapped = to_result(unsafe {
            bindings::xdp_rxq_info_reg_mem_model(
                &mut *info,
                bindings::xdp_mem_type_MEM_TYPE_XSK_BUFF_POOL,
                core::ptr::null_mut(),
            )
        })
        .and_then(|()| {
            // SAFETY: As this function requires.
            to_result(unsafe { bindings::net_shim_xsk_map(raw, dev.device().as_raw()) })
        });
        let raw = match (mapped, NonNull::new(raw)) {
            (Ok(()), Some(raw)) => raw,
            (mapped, _) => {
                // SAFETY: Registered above.
                unsafe { bindings::xdp_rxq_info_unreg(&mut *info) };
                return Err(mapped.err().unwrap_or(EINVAL));
            }
        };
        // SAFETY: The pool is valid, and `info` stays where it is.
        unsafe { bindings::net_shim_xsk_set_rxq(raw.as_ptr(), &mut *info) };
        // INVARIANT: All of it was done above.
        Ok(Self {
            raw,
            info,
            slots,
            in_flight: Cell::new(0),
            skipped: Cell::new(0),
            leaked: false,
        })
    }

    /// Never ends its DMA: the device may go on. The user's memory stays pinned and mapped.
    pub(super) fn leak(mut self) {
        self.leaked = true;
    }

    fn as_raw(&self) -> *mut bindings::xsk_buff_pool {
        self.raw.as_ptr()
    }

    /// The longest frame that fits a buffer, in bytes.
    pub(super) fn frame_size(&self) -> u32 {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_xsk_frame_size(self.as_raw()) }
    }

    /// Takes a buffer for descriptor `slot`, and returns its DMA address; `None` if the user has
    /// given none.
    pub fn alloc(&self, slot: u32) -> Option<u64> {
        let mut dma = 0;
        let place = self.slots.get(slot as usize)?;
        if !place.get().is_null() {
            return None;
        }
        // SAFETY: Valid by the type invariant, and this thread is the only user.
        let buffer = unsafe { bindings::net_shim_xsk_alloc(self.raw.as_ptr(), &mut dma) };
        if buffer.is_null() {
            return None;
        }

        // INVARIANT: Taken above.
        place.set(buffer);
        Some(dma)
    }

    /// Gives the buffer of descriptor `slot` back, with whatever is in it.
    pub fn discard(&self, slot: u32) {
        if let Some(buffer) = self.take(slot) {
            // SAFETY: By the type invariant it was ours.
            unsafe { bindings::net_shim_xsk_free(buffer.as_ptr()) };
        }
    }

    /// Takes all buffers from descriptors: the device has stopped writing.
    pub fn discard_all(&self) {
        // CAST: As many as a ring has.
        for slot in 0..self.slots.len() as u32 {
            self.discard(slot);
        }
    }

    fn take(&self, slot: u32) -> Option<NonNull<bindings::xdp_buff>> {
        let place = self.slots.get(slot as usize)?;

        NonNull::new(place.replace(core::ptr::null_mut()))
    }

    /// Lets `program` decide on the frame of `len` bytes that the device has written to the buffer of
    /// descriptor `slot`; without one it goes up. What goes up is a copy.
    pub fn receive<T: Xdp>(
        &self,
        slot: u32,
        len: u32,
        program: Option<&Program>,
        metadata: &T::Metadata,
        napi: &Receive<'_, T>,
    ) -> Verdict {
        let fits = len <= self.frame_size()
            && program.is_none_or(|program| program.belongs_to(napi.device().as_raw()));
        let Some(buffer) = self.take(slot) else {
            return Verdict::Failed;
        };
        let xdp = buffer.as_ptr();
        let verdict = if fits {
            // SAFETY: By the type invariant the buffer is ours, and the frame fits.
            unsafe {
                bindings::net_shim_xsk_prepare(xdp, len, core::ptr::from_ref(metadata).cast());
                Self::run(xdp, program, napi)
            }
        } else {
            (Verdict::Failed, false)
        };

        if let (verdict, false) = verdict {
            // SAFETY: Nobody else has taken it; to free what the core has freed does nothing.
            unsafe { bindings::net_shim_xsk_free(xdp) };
            verdict
        } else {
            verdict.0
        }
    }

    /// What becomes of a frame, and whether its buffer went with it.
    ///
    /// # Safety
    ///
    /// `xdp` must be a buffer with a frame in it.
    unsafe fn run<T: Xdp>(
        xdp: *mut bindings::xdp_buff,
        program: Option<&Program>,
        napi: &Receive<'_, T>,
    ) -> (Verdict, bool) {
        let dev = napi.device().as_raw();
        // SAFETY: As this function requires, in NAPI context; programs are valid.
        unsafe {
            let Some(program) = program else {
                return (Self::copy(xdp, napi), false);
            };
            let program = program.as_raw();
            let action = bindings::net_shim_xdp_run(program, xdp);

            match action {
                bindings::xdp_action_XDP_DROP => return (Verdict::Drop, false),
                bindings::xdp_action_XDP_PASS => return (Self::copy(xdp, napi), false),
                bindings::xdp_action_XDP_TX => {
                    // A copy, too; the buffer is the core's again.
                    let frame = Frame::from_raw(bindings::xdp_convert_zc_to_xdp_frame(xdp), false);

                    if let Some(frame) = frame {
                        return (Verdict::Transmit(frame), true);
                    }
                }
                bindings::xdp_action_XDP_REDIRECT => {
                    if bindings::xdp_do_redirect(dev, xdp, program) == 0 {
                        napi.flush_redirected();
                        return (Verdict::Redirect, true);
                    }
                }
                _ => {}
            }
            bindings::net_shim_xdp_failed(dev, program, action);
            (Verdict::Failed, false)
        }
    }

    /// # Safety
    ///
    /// As for [`Self::run`].
    unsafe fn copy<T: Driver>(xdp: *mut bindings::xdp_buff, napi: &Receive<'_, T>) -> Verdict {
        // SAFETY: As this function requires; the skb is ours.
        match unsafe { RxSkb::from_raw(bindings::net_shim_xsk_copy(napi.as_raw(), xdp)) } {
            Some(skb) => Verdict::Pass(skb),
            None => Verdict::NoMemory,
        }
    }

    /// Returns whether the user waits for a wakeup when the queue needs buffers; otherwise the driver
    /// has to look for them.
    pub fn needs_wakeup(&self) -> bool {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_xsk_uses_need_wakeup(self.as_raw()) }
    }

    /// Tells the user whether the queue waits for buffers, and to be woken.
    pub fn set_rx_wakeup(&self, wanted: bool) {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_xsk_set_rx_need_wakeup(self.as_raw(), wanted) };
    }

    /// Takes up to `max` frames that sockets want sent, and has `send` give each to the device, or
    /// refuse it. Returns how many there were.
    ///
    /// They are to be completed in their order.
    pub fn transmit(&self, max: u32, mut send: impl FnMut(XskFrame) -> bool) -> u32 {
        // SAFETY: Valid by the type invariant, and this thread is the only user.
        let count = unsafe { bindings::net_shim_xsk_tx_batch(self.as_raw(), max) };

        for i in 0..count {
            let mut address = 0;
            // SAFETY: There are so many.
            let len = unsafe { bindings::net_shim_xsk_tx_desc(self.as_raw(), i, &mut address) };
            let entries = self.skipped.get() + 1;

            if send(XskFrame {
                address,
                len,
                entries,
            }) {
                self.in_flight.set(self.in_flight.get() + entries);
                self.skipped.set(0);
            } else {
                self.skipped.set(entries);
            }
        }
        self.completed(0);
        count
    }

    /// Tells sockets that so many entries were sent, those that were given to the device first.
    pub fn completed(&self, entries: u32) {
        let in_flight = self.in_flight.get();
        let mut done = entries.min(in_flight);

        self.in_flight.set(in_flight - done);
        if done == in_flight {
            done += self.skipped.take();
        }
        if done != 0 {
            // SAFETY: Valid by the type invariant; the core has given so many and not got them back.
            unsafe { bindings::net_shim_xsk_tx_completed(self.as_raw(), done) };
        }
    }

    /// Tells sockets that all is sent: the device has stopped reading.
    pub fn complete_all(&self) {
        self.completed(self.in_flight.get());
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.leaked {
            // SAFETY: By the type invariant.
            unsafe { bindings::net_shim_xsk_pin(self.as_raw()) };
        } else {
            self.discard_all();
            self.complete_all();
            // SAFETY: By the type invariant; the device does not use the buffers any more.
            unsafe { bindings::net_shim_xsk_unmap(self.as_raw()) };
        }
        // SAFETY: By the type invariant; nobody receives into the buffers any more.
        unsafe {
            bindings::net_shim_xsk_set_rxq(self.as_raw(), core::ptr::null_mut());
            bindings::xdp_rxq_info_unreg(&mut *self.info);
        }
    }
}
