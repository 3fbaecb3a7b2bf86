// SPDX-License-Identifier: MIT OR Apache-2.0

//! Models of devices by their datasheets, without sockets, threads or a clock of their own: whoever has
//! one reads and writes its registers, gives it frames and tells it the time, and it reads and writes
//! memory, sends frames and interrupts through a [`Host`].

mod host;
pub mod nic;

pub use host::{Fault, Host};
