// SPDX-License-Identifier: GPL-2.0

//! What a poll may do.
//!
//! netpoll polls with a budget of 0, perhaps with interrupts off, to have transmits completed. In
//! such a poll skbs must not be built nor handed up, XDP programs must not run, and page pools must
//! not be allocated from: what does any of that wants a [`Receive`], which only a poll with a budget
//! has. Neither leaves the thread, or outlives the poll.

use core::{
    cell::Cell,
    marker::PhantomData,
    num::NonZero,
    ops::Deref, //
};

use net_bindings as bindings;

use super::Instance;
use crate::{
    device::{
        Driver,
        NetDevice, //
    },
    page_pool,
    skb::{
        RxMetadata,
        RxSkb,
        TxSkb, //
    },
    xdp::Pool, //
};

/// Proof of running in a NAPI's poll.
pub struct Completion<'a, T: Driver> {
    napi: &'a Instance<T::Napi>,
    dev: &'a NetDevice<T>,
    budget: i32,
    /// The poll is this thread's.
    _not_send: PhantomData<*mut ()>,
}

impl<'a, T: Driver> Completion<'a, T> {
    /// # Safety
    ///
    /// The caller must be the poll of `napi`, which is one of `dev`'s, and have that budget.
    pub(super) unsafe fn new(
        napi: &'a Instance<T::Napi>,
        dev: &'a NetDevice<T>,
        budget: i32,
    ) -> Self {
        Self {
            napi,
            dev,
            budget,
            _not_send: PhantomData,
        }
    }

    /// The device that the NAPI belongs to.
    #[inline]
    pub fn device(&self) -> &'a NetDevice<T> {
        self.dev
    }

    /// The NAPI's number.
    #[inline]
    pub fn index(&self) -> u32 {
        self.napi.index
    }

    /// The memory of the AF_XDP socket that is bound to RX queue `queue`, one of this NAPI's, and to
    /// the TX queue of that number.
    #[inline]
    pub fn pool(&self, queue: u32) -> Option<&Pool> {
        // SAFETY: In the NAPI's poll, which this does not outlive.
        unsafe { self.napi.pool(queue) }
    }

    /// Frees a frame that was sent (`napi_consume_skb()`).
    #[inline]
    pub fn consume(&self, skb: TxSkb) {
        // SAFETY: We own the skb, and are in a poll with that budget.
        unsafe { bindings::napi_consume_skb(skb.into_raw(), self.budget) };
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::napi_struct {
        self.napi.as_raw()
    }
}

/// Proof of running in a NAPI's poll that has a budget: it may receive.
pub struct Receive<'a, T: Driver> {
    completion: Completion<'a, T>,
    budget: NonZero<u32>,
    /// XDP has redirected frames, which are on lists of this poll: they must leave with it.
    redirected: Cell<bool>,
}

impl<'a, T: Driver> Deref for Receive<'a, T> {
    type Target = Completion<'a, T>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.completion
    }
}

impl<'a, T: Driver> Receive<'a, T> {
    /// # Safety
    ///
    /// The poll must have that budget.
    pub(super) unsafe fn new(completion: Completion<'a, T>, budget: NonZero<u32>) -> Self {
        Self {
            completion,
            budget,
            redirected: Cell::new(false),
        }
    }

    /// How many packets the poll may receive.
    #[inline]
    pub fn budget(&self) -> u32 {
        self.budget.get()
    }

    /// Hands a frame to generic receive offload (`napi_gro_receive()`).
    // For each packet: what a driver does not say of its packets costs nothing.
    #[inline(always)]
    pub fn receive(&self, skb: RxSkb, metadata: &RxMetadata) {
        if skb.is_unreadable() != self.napi.unreadable.get() {
            self.flush_gro(skb.is_unreadable());
        }
        // SAFETY: The NAPI is being polled with a budget.
        unsafe { skb.hand_up(self.as_raw(), metadata) };
    }

    /// Has GRO pass on what it holds: it would merge fragments that the CPU can read with some that it
    /// can't, of a queue that was bound meanwhile or of another one.
    #[cold]
    fn flush_gro(&self, unreadable: bool) {
        self.napi.unreadable.set(unreadable);
        // SAFETY: The NAPI is being polled, with softirqs disabled.
        unsafe { bindings::net_shim_napi_gro_flush(self.as_raw()) };
    }

    /// Takes note that an interrupt's work is done, and of how many packets and bytes the NAPI's
    /// queues have received in their life, for dynamic interrupt moderation; does nothing where it
    /// is off.
    #[inline]
    pub fn sample(&self, received: impl FnOnce() -> (u64, u64)) {
        self.napi.moderation.sample(received);
    }

    /// Redirected frames go on at the end of the poll.
    #[inline]
    pub(crate) fn flush_redirected(&self) {
        self.redirected.set(true);
    }

    /// Ends the poll's redirects.
    pub(super) fn flush(&self) {
        if self.redirected.take() {
            // SAFETY: In the NAPI that the frames were received in.
            unsafe { bindings::xdp_do_flush() };
        }
    }
}

impl<T: Driver> page_pool::Sealed for Receive<'_, T> {}

impl<T: Driver> page_pool::Context for Receive<'_, T> {
    #[inline]
    fn polls(&self) -> *const bindings::napi_struct {
        self.as_raw()
    }
}
