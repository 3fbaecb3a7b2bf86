// SPDX-License-Identifier: MIT OR Apache-2.0

//! How many tests run at once.

use std::ffi::OsString;

/// nextest's option for it.
pub(super) const THREADS: &str = "NEXTEST_TEST_THREADS";

/// How many tests run at once, unless the user says so (with `NEXTEST_TEST_THREADS`, where memory is
/// short: most have a guest of 1 GiB). Two more than there are processors, because all of them wait
/// now and then.
pub(super) fn threads() -> OsString {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    std::env::var_os(THREADS).unwrap_or_else(|| (processors() + 2).to_string().into())
}
