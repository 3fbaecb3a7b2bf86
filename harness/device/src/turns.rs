// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a device has sent while it was locked is delivered once it has been unlocked, by the thread that unlocked
//! it, so that no thread holds locks of two devices. At most one thread delivers what a device has sent: all
//! stays in order, and of two devices that answer each other neither is entered again by its own delivery.

use std::sync::Mutex;

use crate::lock;

/// What is to be delivered, and whether a thread is about it.
#[derive(Debug, Default)]
pub(crate) struct Turns<Q> {
    pub(crate) queue: Q,
    pub(crate) delivering: bool,
}

impl<Q> Turns<Q> {
    /// Nobody delivers.
    pub(crate) fn new(queue: Q) -> Mutex<Self> {
        let delivering = false;
        Mutex::new(Self { queue, delivering })
    }
}

/// Delivers one thing after the other, as `next` takes them from the queue, unless another thread does. `rest`
/// sees what is left. No device must be locked.
pub(crate) fn deliver<Q, T>(
    turns: &Mutex<Turns<Q>>,
    next: impl Fn(&mut Q) -> Option<T>,
    carry: impl Fn(T),
    rest: impl FnOnce(&Q),
) {
    let mut delivers = false;
    loop {
        let mut turns = lock(turns);
        if turns.delivering && !delivers {
            return;
        }
        let one = next(&mut turns.queue);
        delivers = one.is_some();
        turns.delivering = delivers;
        let Some(one) = one else {
            return rest(&turns.queue);
        };
        drop(turns);
        carry(one);
    }
}
