// SPDX-License-Identifier: MIT OR Apache-2.0

//! Shows what this crate can tell about an interface: `cargo run --example inspect -- eth0`.

use std::fmt::Debug;
use std::process::ExitCode;

use devmem::ethtool::{self, Ethtool};
use devmem::interface;
use devmem::netdev::Netdev;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        eprintln!("usage: inspect <interface>; see: ip link");
        return ExitCode::FAILURE;
    };
    let ifindex = match interface::index(&name) {
        Ok(ifindex) => ifindex,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };

    let mut ethtool = Ethtool::new();
    show("link", ethtool.link(ifindex));
    show("rings", ethtool.rings(ifindex));
    show("channels", ethtool.channels(ifindex));
    show("RSS", ethtool.rss(ifindex));
    show(
        "features",
        ethtool.features(ifindex).map(|features| features.active),
    );
    show("driver statistics", ethtool::driver_stats(ifindex));

    let mut netdev = Netdev::new();
    show("queues", netdev.queues(ifindex));
    show("NAPI instances", netdev.napis(ifindex));
    show("page pools", netdev.page_pools(ifindex));
    show("page pool statistics", netdev.page_pool_stats());
    show("interface statistics", netdev.device_stats(ifindex));
    show("queue statistics", netdev.queue_stats(ifindex));
    ExitCode::SUCCESS
}

fn show<T: Debug>(what: &str, answer: devmem::Result<T>) {
    match answer {
        Ok(value) => println!("{what}: {value:#?}"),
        Err(error) => println!("{what}: {error}"),
    }
}
