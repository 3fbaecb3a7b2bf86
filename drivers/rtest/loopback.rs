// SPDX-License-Identifier: GPL-2.0

//! Receives what was sent, in bursts that one poll receives: GRO may merge what is in one.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};
use net::{
    fragment::FragmentAllocator,
    napi::Receive,
    skb::{
        RxMetadata,
        RxSkb,
        TxSkb,
        ETH_P_IP, //
    }, //
};

use crate::{
    module_parameters,
    Nic, //
};

/// A queue that the NIC does not have.
const NO_QUEUE: u16 = 100;
/// Frames of a burst.
const BURST: usize = 8;

/// Frames that wait until they are a burst.
struct Waiting {
    frames: [Option<TxSkb>; BURST],
    count: usize,
}

impl Waiting {
    const NONE: Self = Self {
        frames: [const { None }; BURST],
        count: 0,
    };
}

/// From the TX queue to the NAPI.
#[pin_data]
pub(crate) struct Loopback {
    #[pin]
    waiting: SpinLock<Waiting>,
}

impl Loopback {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self { waiting <- new_spinlock!(Waiting::NONE) }),
            GFP_KERNEL,
        )
    }

    /// Takes a frame that was sent; drops it while a burst waits for the poll, and what the core itself
    /// sends over IPv6.
    pub(crate) fn push(&self, skb: TxSkb) {
        if skb.protocol() != ETH_P_IP {
            return;
        }
        let mut waiting = self.waiting.lock();
        let count = waiting.count;

        if let Some(place) = waiting.frames.get_mut(count) {
            *place = Some(skb);
            waiting.count += 1;
        }
    }

    /// Receives a burst, if there is one. With `unreadable`, every other frame counts as one that the CPU
    /// can't read.
    pub(crate) fn receive(&self, pool: &mut FragmentAllocator<'_>, napi: &Receive<'_, Nic>) {
        let burst = {
            let mut waiting = self.waiting.lock();

            if waiting.count < BURST {
                return;
            }
            core::mem::replace(&mut *waiting, Waiting::NONE)
        };

        for (number, sent) in burst.frames.into_iter().flatten().enumerate() {
            let Some(mut skb) = RxSkb::copy_sent(&mut pool.alloc(), &sent, napi) else {
                continue;
            };

            if number % 2 == 1 && module_parameters::unreadable.value() {
                skb.set_unreadable();
            }
            napi.receive(skb, &RxMetadata::new(NO_QUEUE));
        }
    }
}
