// SPDX-License-Identifier: GPL-2.0

//! Network driver for the Intel 82576, with device memory TCP.
//!
//! Modules:
//!
//! - [`driver`]: PCI device table, and probe;
//! - [`hw`]: the device's registers;
//! - [`filter`]: RX mode;
//! - [`netdev`]: the interface goes up and down, and what state it has;
//! - [`vector`]: one interrupt, one NAPI, one queue pair;
//! - [`rx`] and [`tx`]: the two paths of a packet;
//! - [`doorbells`]: lets other devices ring for what they have computed;
//! - [`queues`]: restarts single RX queues, which binds them to device memory;
//! - [`xdp`]: attaches and detaches XDP programs;
//! - [`xsk`]: AF_XDP zero copy;
//! - [`ethtool`]: ethtool operations;
//! - [`loopback`]: sends frames in MAC loopback;
//! - [`clock`]: PTP clock and timestamps;
//! - [`counters`]: the device's statistics registers;
//! - [`stats`]: per-queue statistics;
//! - [`power`]: shutdown, suspend and resume;
//! - [`recovery`]: PCI error recovery.

mod clock;
mod counters;
mod doorbells;
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
