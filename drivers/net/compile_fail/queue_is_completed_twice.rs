// SPDX-License-Identifier: GPL-2.0

//! Byte queue limits have one completion.
//~ error[E0599]: no method named `clone` found

include!("nic.rs");

/// What the control path does.
pub fn start(completion: net::tx::TxCompletion<Nic>) -> net::tx::TxCompletion<Nic> {
    #[cfg(not(fixed))]
    return completion.clone();
    #[cfg(fixed)]
    completion
}
