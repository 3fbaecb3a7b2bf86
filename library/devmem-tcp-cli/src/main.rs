// SPDX-License-Identifier: MIT OR Apache-2.0

//! A tool for device memory TCP on any NIC that can.
//!
//! Results go to the standard output, in text or as JSON; everything else to the standard error.

mod args;
mod asked;
mod check;
mod connect;
mod exit;
mod flow;
mod interface;
mod listen;
mod manual;
mod memory;
mod report;
mod rpc;
mod show;
mod size;
mod steer;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    let done = match &arguments.command {
        args::Command::Listen(arguments) => listen::run(arguments),
        args::Command::Connect(arguments) => connect::run(arguments),
        args::Command::Steer(arguments) => steer::run(arguments),
        args::Command::Check(arguments) => check::run(arguments),
        args::Command::Manual(arguments) => manual::run(arguments),
        args::Command::Show(arguments) => show::run(arguments),
    };
    exit::code(done)
}
