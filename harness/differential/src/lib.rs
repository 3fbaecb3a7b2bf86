// SPDX-License-Identifier: MIT OR Apache-2.0

//! Two models of the 82576 do the same, side by side: ours in this process, and QEMU's `igb` over its qtest
//! protocol, without a guest. What they did is compared, descriptor by descriptor and byte by byte.
//!
//! [`Subject`] is a NIC with memory and a wire. [`receive`] and [`transmit`] have what is done with one and
//! what is seen of it, [`ring`] the same of rings that no driver may set up, and [`known`] the differences that
//! are known and what decides each.

mod error;
mod frame;
mod hex;
mod igb;
pub mod known;
mod ours;
pub mod place;
mod qtest;
pub mod receive;
pub mod ring;
mod subject;
pub mod transmit;

pub use error::{Error, Result};
pub use hex::Hex;
pub use igb::Igb;
pub use ours::Ours;
pub use subject::{MAC, Subject, start};
