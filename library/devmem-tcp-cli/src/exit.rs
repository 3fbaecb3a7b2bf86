// SPDX-License-Identifier: MIT OR Apache-2.0

//! Exit codes.

use std::process::ExitCode;

use anyhow::Result;

/// All that was to be shown holds.
pub(crate) const HOLDS: u8 = 0;
/// What was tried failed. (Wrong arguments are 2, as clap has it.)
pub(crate) const FAILED: u8 = 1;

/// Prints the error, if there is one, and makes an exit code of it; else it is what was found.
pub(crate) fn code(done: Result<u8>) -> ExitCode {
    match done {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("devmem-tcp: {error:#}");
            FAILED.into()
        }
    }
}
