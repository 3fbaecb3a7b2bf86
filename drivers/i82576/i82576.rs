// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The Intel 82576 gigabit Ethernet controller, as its datasheet describes it.
//!
//! Registers, descriptors, the decoding of header split, ring arithmetic and the RSS hash: pure
//! functions over integers. The crate knows no kernel and allocates nothing; the same source is
//! compiled by Kbuild into a driver and by cargo for tests on the host.
//!
//! * [`regs`]: where the registers are and what their bits mean.
//! * [`rx`] and [`tx`]: advanced receive and transmit descriptors.
//! * [`offload`]: how a frame to send becomes descriptors.
//! * [`ring`]: the indices of a descriptor ring.
//! * [`rss`]: Toeplitz hash, hash key and redirection table.
//! * [`filter`]: which multicast addresses and VLANs are received.
//! * [`five_tuple`]: filters that send packets to a queue.
//! * [`frame`]: how long a padded frame really is.
//! * [`clock`]: nanoseconds, made of the system time.
//! * [`timestamping`]: which frames get a timestamp of it.
//! * [`udp_probe`]: whether a device segments UDP.
//! * [`limits`]: the bounds of the device.
//! * [`pci`]: how the device shows on the bus.
//!
//! Descriptors are `[u64; 2]` in host order: the values of the two little-endian quadwords of a
//! descriptor in memory. The conversion to and from little endian is the business of the
//! memory's owner.
//!
//! Sources: "Intel 82576 Gigabit Ethernet Controller Datasheet" and the register headers of the
//! kernel's `drivers/net/ethernet/intel/igb`. Where the model in QEMU (`hw/net/igb_core.c`) is
//! narrower or wider than silicon, the item says so.

#![no_std]
// Cannot be `expect`: cargo does not add the attribute, so there it would go unfulfilled.
#![allow(
    unused_attributes,
    clippy::duplicated_attributes,
    reason = "Kbuild adds its own no_std"
)]
#![forbid(unsafe_code)]

pub mod clock;
pub mod contexts;
pub mod filter;
pub mod five_tuple;
pub mod frame;
pub mod limits;
pub mod offload;
pub mod pci;
pub mod regs;
pub mod ring;
pub mod rss;
pub mod rx;
pub mod timestamping;
pub mod tx;
pub mod udp_probe;
