// SPDX-License-Identifier: GPL-2.0

//! What a poll may do, an interrupt handler on another processor may not.
//~ error[E0277]: `Cell<bool>` cannot be shared between threads safely
//~ error[E0277]: `*mut ()` cannot be shared between threads safely

include!("nic.rs");

fn to_another_thread<T: Send>(_value: T) {}

/// What a poll does.
pub fn receive(napi: &Receive<'_, Nic>) {
    #[cfg(not(fixed))]
    to_another_thread(napi);
    #[cfg(fixed)]
    to_another_thread(napi.budget());
}
