// SPDX-License-Identifier: GPL-2.0

//! A registration must not be forgotten: who registers a device promises that.
//~ error[E0133]: call to unsafe function

include!("nic.rs");

/// What probe does.
pub fn probe(
    nic: net::registration::Unregistered<'static, Nic>,
) -> Result<net::registration::Registration<'static, Nic>> {
    #[cfg(not(fixed))]
    return nic.register(Nic, ());
    #[cfg(fixed)]
    // SAFETY: The caller keeps it.
    return unsafe { nic.register(Nic, ()) };
}
