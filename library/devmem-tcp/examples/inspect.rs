// SPDX-License-Identifier: MIT OR Apache-2.0

//! Shows what this crate can tell about an interface: `cargo run --example inspect -- eth0`.

use std::fmt::Debug;
use std::process::ExitCode;

use devmem_tcp::RequestError;
use devmem_tcp::ethtool::{self, Ethtool};
use devmem_tcp::interface::Interface;
use devmem_tcp::netdev::Netdev;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        eprintln!("usage: inspect <name, index or address of an interface>; see: ip link");
        return ExitCode::FAILURE;
    };
    let interface = match name.parse::<Interface>() {
        Ok(interface) => interface,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };

    let mut ethtool = Ethtool::new();
    show("link", ethtool.link(interface));
    show("rings", ethtool.rings(interface));
    show("channels", ethtool.channels(interface));
    show("RSS", ethtool.rss(interface));
    show(
        "features",
        ethtool.features(interface).map(|features| features.active),
    );
    show("driver statistics", ethtool::driver_stats(interface));

    let mut netdev = Netdev::new();
    show("queues", netdev.queues(interface));
    show("NAPI instances", netdev.napis(interface));
    show("page pools", netdev.page_pools(interface));
    show("page pool statistics", netdev.page_pool_stats());
    show("interface statistics", netdev.device_stats(interface));
    show("queue statistics", netdev.queue_stats(interface));
    ExitCode::SUCCESS
}

fn show<T: Debug>(what: &str, answer: Result<T, RequestError>) {
    match answer {
        Ok(value) => println!("{what}: {value:#?}"),
        Err(error) => println!("{what}: {error}"),
    }
}
