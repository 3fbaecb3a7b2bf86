// SPDX-License-Identifier: MIT OR Apache-2.0

//! A tool for device memory TCP on any NIC that can.
//!
//! Results go to the standard output, in text or as JSON; everything else to the standard error.

mod args;
mod exit;
mod interface;
mod show;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    let done = match &arguments.command {
        args::Command::Show(arguments) => show::run(arguments),
    };
    exit::code(done)
}
