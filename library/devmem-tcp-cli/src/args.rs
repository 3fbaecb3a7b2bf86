// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command line.

use clap::{Parser, Subcommand};

use crate::{check, connect, listen, manual, show, steer};

/// Device memory TCP and io_uring zero-copy receive, on any NIC that has them
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
    /// Receive from connections that peers make
    Listen(listen::Arguments),
    /// Send to a peer that listens
    Connect(connect::Arguments),
    /// Set an interface up for as long as a command runs
    Steer(steer::Arguments),
    /// Say what an interface, its driver and the kernel support or lack, and what shows it
    Check(check::Arguments),
    /// Write man pages and completions, for whoever packages it
    #[command(hide = true)]
    Manual(manual::Arguments),
    /// Show queues, NAPI instances, bindings, page pools and counters of an interface
    Show(show::Arguments),
}
