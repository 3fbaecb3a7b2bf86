// SPDX-License-Identifier: GPL-2.0

//! Network driver for the Intel 82576, with device memory TCP.
//!
//! Where to read what:
//!
//! - [`driver`]: which PCI devices, and what probe does;
//! - [`hw`]: the device's registers;
//! - [`filter`]: which frames it receives;
//! - [`netdev`]: the interface goes up and down, and what state it has;
//! - [`vector`]: one interrupt, one NAPI, one queue pair;
//! - [`rx`] and [`tx`]: the two paths of a packet;
//! - [`queues`]: single RX queues are restarted, which binds them to device memory;
//! - [`xdp`]: XDP programs come and go;
//! - [`xsk`]: AF_XDP sockets bring memory to a queue;
//! - [`ethtool`]: what users see and set through ethtool;
//! - [`loopback`]: a frame in a loop inside the device;
//! - [`clock`]: its clock, and timestamps;
//! - [`counters`]: what the device counts;
//! - [`stats`]: what is counted;
//! - [`power`]: shutdown, sleep and wake-up;
//! - [`recovery`]: errors on the bus.

mod clock;
mod counters;
mod driver;
mod ethtool;
mod filter;
mod hw;
mod loopback;
mod netdev;
mod power;
mod queues;
mod recovery;
mod rx;
mod stats;
mod tx;
mod vector;
mod xdp;
mod xsk;

pci_driver::module_pci_driver! {
    type: driver::Rigb,
    name: "rigb",
    authors: ["The nobounce developers"],
    description: "Intel 82576 network driver with device memory TCP",
    license: "GPL",
}
