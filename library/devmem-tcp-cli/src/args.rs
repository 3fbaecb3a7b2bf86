// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command line.

use clap::{Parser, Subcommand};

use crate::show;

/// Device memory TCP and io_uring zero-copy receive, on any NIC that can
#[derive(Debug, Parser)]
#[command(
    name = "devmem-tcp",
    version,
    after_help = "Exit codes: 0 all that was asked for holds; 1 it failed, or doesn't hold; 2 wrong arguments."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show queues, NAPI instances, bindings, page pools and counters of an interface
    Show(show::Arguments),
}
