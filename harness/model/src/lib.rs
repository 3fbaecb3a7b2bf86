// SPDX-License-Identifier: MIT OR Apache-2.0

//! Models of devices by their datasheets, without sockets, threads or a clock of their own: the caller reads
//! and writes registers, passes frames and the time in, and the model reads and writes memory, sends frames
//! and interrupts through a [`Host`].

#![forbid(unsafe_code)]

pub mod engine;
mod host;
pub mod lies;
pub mod nic;

pub use host::{Fault, Host};
