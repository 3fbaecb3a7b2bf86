// SPDX-License-Identifier: MIT OR Apache-2.0

//! `show`: what the kernel tells of an interface's queues.

use anyhow::Result;
use devmem_tcp::netdev::Netdev;

use crate::{exit, interface::About};

/// Of what, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    about: About,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let interface = arguments.about.find()?;
    let queues = Netdev::new().queues(interface)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&queues)?);
    } else {
        for queue in queues {
            println!("{queue:?}");
        }
    }
    Ok(exit::HOLDS)
}
