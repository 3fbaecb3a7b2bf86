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
            eprintln!("devmem-tcp: {}", message(&error));
            FAILED.into()
        }
    }
}

/// The error and its causes. Errors whose text has that of their cause already don't repeat it.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = devmem_tcp::heap::Heap::open("no-such-heap");
        let text = message(&error.context("allocating").expect_err("nobody made it"));
        assert!(
            text.starts_with("allocating: cannot open dma-heap"),
            "{text}"
        );
        assert_eq!(text.matches("No such file").count(), 1, "{text}");
    }
}
