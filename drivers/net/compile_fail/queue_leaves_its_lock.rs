// SPDX-License-Identifier: GPL-2.0

//! Byte queue limits have one writer: a TX queue is accounted for under its lock.
//~ error[E0277]: `*mut net_bindings::netdev_queue` cannot be sent between threads safely
//~ error[E0277]: `*mut ()` cannot be sent between threads safely

include!("nic.rs");

fn to_another_thread<T: Send>(_value: T) {}

/// What a transmit path does.
pub fn transmit(queue: TxQueue<'_>) {
    #[cfg(not(fixed))]
    to_another_thread(queue);
    #[cfg(fixed)]
    to_another_thread(queue.sent(64, false));
}
