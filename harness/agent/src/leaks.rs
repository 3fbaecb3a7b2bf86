// SPDX-License-Identifier: MIT OR Apache-2.0

//! kmemleak: leaked kernel memory.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    os::fd::AsRawFd,
    os::unix::net::UnixDatagram,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::files;

const FILE: &str = "/sys/kernel/debug/kmemleak";

/// kmemleak reports nothing younger (`MSECS_MIN_AGE` in `mm/kmemleak.c`), plus a bit.
const AGE: Duration = Duration::from_millis(5500);

/// Sizes of the caches that are churned, and how often each.
const SIZES: [usize; 9] = [40, 64, 96, 128, 192, 256, 512, 1024, 2048];
const TIMES: usize = 500;

/// The rest of a longer report is of no use.
const MAX_REPORT: u64 = 64 << 10;

/// Looks for leaks; `None` if the kernel has no kmemleak.
///
/// Stale pointers in freed memory hide leaks, so memory is allocated and freed until they are
/// overwritten. An object is reported when a second scan finds it unchanged, and only that scan
/// checks its age.
pub(crate) fn find() -> Result<Option<String>> {
    let file = match File::open(FILE) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.with_context(|| format!("opening {FILE}"))?,
    };
    let begin = Instant::now();
    churn()?;
    files::write(FILE, "scan")?;
    thread::sleep(AGE.saturating_sub(begin.elapsed()));
    files::write(FILE, "scan")?;
    let mut report = Vec::new();
    file.take(MAX_REPORT)
        .read_to_end(&mut report)
        .with_context(|| format!("reading {FILE}"))?;
    Ok(Some(String::from_utf8_lossy(&report).into_owned()))
}

/// Makes the kernel allocate and free objects of each size: it copies a message's control data
/// into one before it parses the data, and finds it invalid.
fn churn() -> Result<()> {
    let (socket, _other) = UnixDatagram::pair().context("making a socket")?;
    for size in SIZES {
        let mut control = vec![0u8; size];
        // SAFETY: All zeros is a valid `msghdr`: no name, no data, no control data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size;
        for _ in 0..TIMES {
            // SAFETY: `message` points to `control`, which has `size` bytes and outlives the call.
            unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) };
        }
    }
    Ok(())
}
