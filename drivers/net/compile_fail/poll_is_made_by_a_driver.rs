// SPDX-License-Identifier: GPL-2.0

//! Only `net` says that a poll is running.
//~ error[E0624]: associated function `new` is private

include!("nic.rs");

/// What a poll does.
pub fn complete(napi: &Completion<'_, Nic>) {
    #[cfg(not(fixed))]
    let _ = Completion::<Nic>::new;
    let _ = napi.index();
}
