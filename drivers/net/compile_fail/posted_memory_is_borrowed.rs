// SPDX-License-Identifier: GPL-2.0

//! The device may be writing to a buffer: it is never a slice.
//~ error[E0599]: no method named `bytes` found

include!("nic.rs");

/// What a poll does.
pub fn look(buffer: &net::fragment::Fragment) -> u8 {
    #[cfg(not(fixed))]
    return buffer.bytes(0, 1)[0];
    #[cfg(fixed)]
    {
        let mut byte = [0];

        buffer.read(0, &mut byte);
        byte[0]
    }
}
