// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the end-to-end cases share: two NICs on one wire, and transfers that are verified.
//!
//! A case boots a [`Testbed`], makes something happen and ends with [`Testbed::finish`], which
//! fails if the kernel complained; a case that forgets to call it panics. The cases are in
//! `tests/`, one file per feature.

mod accelerator;
mod bare;
mod both_ways;
mod capture;
mod counts;
mod error;
mod exchange;
mod frame;
pub mod hostile;
mod kernel_fault;
mod nic;
mod options;
mod power;
mod queues;
mod rss;
mod settings;
mod skip;
mod station;
mod surprise;
pub mod symbols;
mod testbed;
mod timestamps;
mod transfer;
mod unfinished;
mod zcrx;

pub use accelerator::{ACCELERATOR, place};
pub use bare::BareDevice;
pub use both_ways::BothWays;
pub use capture::{Captured, captured};
pub use error::{CaseError, Refusal, Result, assert_refused};
pub use exchange::{EXPERIMENTAL, ethernet};
pub use frame::Frame;
pub use kernel_fault::KernelFault;
pub use nic::{Ability, NIC_ENV, Nic};
pub use options::{ACCELERATOR_MIB, Driver, Options};
pub use skip::SKIPPED_ENV;
pub use station::{Family, Station};
pub use surprise::PulledOut;
pub use testbed::{PATIENCE_MS, PORTS, Testbed};
pub use transfer::{Received, Sent, Stream, finish};
pub use zcrx::{ReceivedByRing, assert_whole};
