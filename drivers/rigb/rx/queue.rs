// SPDX-License-Identifier: GPL-2.0

//! An RX queue of either kind: it receives into pages of its own, or into a socket's memory.

use kernel::{
    device::{
        Bound,
        Device, //
    },
    prelude::*,
    sync::Arc, //
};
use net::{
    device::Locked,
    napi::{
        Disabled,
        Receive, //
    },
    queue,
    xdp::Program, //
};

use super::{
    xsk::{
        XskRing,
        XskRunning, //
    },
    Layout,
    Ring,
    Running, //
};
use crate::{
    netdev::Adapter,
    stats::QueueStats, //
};

/// The memory of an RX queue that the device does not know.
pub(crate) enum Memory<'bound> {
    Pages(Ring<'bound>),
    Xsk(XskRing),
}

/// An RX queue that the device works on.
pub(crate) enum Queue<'bound> {
    Pages(Running<'bound>),
    Xsk(XskRunning<'bound>),
}

impl<'bound> Memory<'bound> {
    /// Allocates what RX queue `index` needs, which is configured as `config` says, or is a
    /// `socket`'s, and runs `program`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the queue's memory provider says.
    pub(crate) fn new(
        dev: Locked<'_, Adapter<'bound>>,
        parent: &Device<Bound>,
        layout: Layout,
        config: &queue::Config,
        index: u16,
        xsk: bool,
        program: Option<&Program>,
    ) -> Result<Self> {
        if xsk {
            XskRing::new(parent, layout, index, program).map(Self::Xsk)
        } else {
            Ring::new(dev, parent, layout, config, index, program).map(Self::Pages)
        }
    }
}

impl<'bound> Queue<'bound> {
    /// Hands `memory` to the device.
    ///
    /// # Errors
    ///
    /// The device did not start the queue: returns the memory.
    #[expect(
        clippy::result_large_err,
        reason = "memory is returned as it is: starting must not allocate"
    )]
    pub(crate) fn start(
        memory: Memory<'bound>,
        adapter: &Adapter<'bound>,
        stats: Arc<QueueStats>,
        napi: &Disabled<'_, Adapter<'bound>>,
    ) -> core::result::Result<Self, (Error, Memory<'bound>)> {
        match memory {
            Memory::Pages(ring) => Running::start(ring, adapter, stats, napi)
                .map(Self::Pages)
                .map_err(|(error, ring)| (error, Memory::Pages(ring))),
            Memory::Xsk(ring) => XskRunning::start(ring, adapter, stats)
                .map(Self::Xsk)
                .map_err(|(error, ring)| (error, Memory::Xsk(ring))),
        }
    }

    /// Stops the queue: the device does no more DMA to the memory, nor to a socket's.
    ///
    /// # Errors
    ///
    /// The device did not stop: the queue runs on.
    #[expect(
        clippy::result_large_err,
        reason = "memory is returned as it is: stopping must not allocate"
    )]
    pub(crate) fn stop(
        self,
        napi: &Disabled<'_, Adapter<'bound>>,
    ) -> core::result::Result<Memory<'bound>, (Error, Self)> {
        match self {
            Self::Pages(running) => running
                .stop(napi)
                .map(Memory::Pages)
                .map_err(|(error, running)| (error, Self::Pages(running))),
            Self::Xsk(running) => running
                .stop()
                .map(Memory::Xsk)
                .map_err(|(error, running)| (error, Self::Xsk(running))),
        }
    }

    /// Takes the memory from the device, by a reset if it must, and frees it.
    ///
    /// # Errors
    ///
    /// The device may go on: the memory stays for ever, and so must a socket's.
    pub(crate) fn halt(self, napi: &Disabled<'_, Adapter<'bound>>) -> Result {
        match self {
            Self::Pages(running) => running.halt(napi),
            Self::Xsk(running) => running.halt(),
        }
    }

    /// Runs another XDP program from now on, or none.
    pub(crate) fn set_program(&mut self, program: Option<Program>) {
        match self {
            Self::Pages(running) => running.set_program(program),
            Self::Xsk(running) => running.set_program(program),
        }
    }

    /// Returns whether there is something to receive.
    pub(crate) fn is_pending(&self) -> bool {
        match self {
            Self::Pages(running) => running.is_pending(),
            Self::Xsk(running) => running.is_pending(),
        }
    }

    /// Whether the queue waits for a descriptor that the device has left out, and did when this was last
    /// called. Reads a register.
    pub(crate) fn is_stuck(&mut self) -> bool {
        match self {
            Self::Pages(running) => running.is_stuck(),
            Self::Xsk(running) => running.is_stuck(),
        }
    }

    /// Packets and bytes that the queue has received in its life.
    pub(crate) fn received(&self) -> (u64, u64) {
        match self {
            Self::Pages(running) => running.received(),
            Self::Xsk(running) => running.received(),
        }
    }

    /// Receives up to the budget of packets. Returns how many, and whether the ring is so empty that
    /// it must be polled again.
    #[inline]
    pub(crate) fn receive(&mut self, napi: &Receive<'_, Adapter<'bound>>) -> (u32, bool) {
        match self {
            Self::Pages(running) => running.receive(napi),
            Self::Xsk(running) => match napi.pool(napi.index()) {
                Some(pool) => running.receive(pool, napi),
                None => (0, false),
            },
        }
    }
}
