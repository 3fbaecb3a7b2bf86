// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel's random numbers (random(4)).

use std::{fs::File, io, os::fd::AsRawFd};

use anyhow::{Context, Result};

const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;
const RNDRESEEDCRNG: libc::Ioctl = 0x5207;

/// `struct rand_pool_info`
#[repr(C)]
struct Pool {
    entropy_bits: libc::c_int,
    bytes: libc::c_int,
    data: [u8; 32],
}

/// Reseeds the kernel's random number generator from `data`.
pub(crate) fn reseed(data: [u8; 32]) -> Result<()> {
    let random = File::options()
        .write(true)
        .open("/dev/urandom")
        .context("opening /dev/urandom")?;
    let pool = Pool {
        entropy_bits: 8 * data.len() as libc::c_int,
        bytes: data.len() as libc::c_int,
        data,
    };

    // SAFETY: the kernel reads a pool with as many bytes as it says.
    let added = unsafe { libc::ioctl(random.as_raw_fd(), RNDADDENTROPY, &raw const pool) };
    // SAFETY: this one takes no argument.
    if added < 0 || unsafe { libc::ioctl(random.as_raw_fd(), RNDRESEEDCRNG) } < 0 {
        return Err(io::Error::last_os_error()).context("seeding the kernel's random numbers");
    }
    Ok(())
}
