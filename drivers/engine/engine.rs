// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The engine of an accelerator: what it does, and how it is programmed.
//!
//! It is a device of our own, shaped after what there is in silicon: work queues, descriptors and
//! portals as Intel's Data Streaming Accelerator has them, fragments laid out as NCCL's unpack metadata
//! of received device memory.
//!
//! - It has [`QUEUES`](regs::QUEUES) work queues, each for one user. A queue reaches memory through its
//!   [`WINDOWS`](regs::WINDOWS) and nothing else: ranges of bus addresses that the driver opens. Users
//!   name a window and an offset in it, never an address, so that a user's commands reach that user's
//!   memory only, with no look at them by the driver.
//! - A queue's ring of [descriptors](descriptor) is in one of its windows. The user writes descriptors,
//!   then the count of all that were ever written to [`TAIL`](regs::TAIL) in the queue's portal, a page of
//!   registers of its own.
//! - The engine executes them in order, each after the one before, and writes a completion into the
//!   descriptor itself. It sends the queue's interrupt where the descriptor asks for it.
//! - What a descriptor works on is a list of [fragments](fragment), in a window as well.
//!
//! The crate knows no kernel and allocates nothing; the same source is compiled by Kbuild into a driver, and
//! by cargo into the model of the device and into what uses it. All multi-byte values are little-endian.
//!
//! * [`regs`]: where the registers are.
//! * [`descriptor`]: what the engine is to do, and what became of it.
//! * [`fragment`]: which bytes.
//! * [`pci`]: how the device shows on the bus.

#![no_std]
// Cannot be `expect`: cargo does not add the attribute, so there it would go unfulfilled.
#![allow(
    unused_attributes,
    clippy::duplicated_attributes,
    reason = "Kbuild adds its own no_std"
)]
#![forbid(unsafe_code)]

pub mod descriptor;
pub mod fragment;
pub mod pci;
pub mod regs;
