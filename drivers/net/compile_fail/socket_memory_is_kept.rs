// SPDX-License-Identifier: GPL-2.0

//! The memory of an AF_XDP socket is lent, and goes when the core says so.
//~ error: lifetime may not live long enough

include!("nic.rs");

use net::xdp::Pool;

/// What a poll does.
#[cfg(not(fixed))]
pub fn keep<'n, 'a>(napi: &'n Completion<'n, Nic>, kept: &mut Option<&'a Pool>) {
    *kept = napi.pool(0);
}
/// What a poll does.
#[cfg(fixed)]
pub fn keep<'n: 'a, 'a>(napi: &'n Completion<'n, Nic>, kept: &mut Option<&'a Pool>) {
    *kept = napi.pool(0);
}
