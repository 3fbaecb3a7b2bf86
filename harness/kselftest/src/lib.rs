// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel's own driver selftests, unmodified: `tools/testing/selftests/drivers/net{,/hw}`.
//!
//! [`run`] boots a guest for a [`Test`] and returns the results of its sub-cases; [`compare`] says
//! which of them have passed before. The tests are in the guest's root file system, at [`SOURCE`].

mod error;
mod ktap;
mod lines;
mod list;
mod machine;
mod outcome;

pub use error::{Error, Result};
pub use ktap::Verdict;
pub use lines::Lines;
pub use list::{Test, choose, named, place};
pub use machine::{Report, run};
pub use outcome::{Outcome, compare, read, replace, write};

/// The environment variable with the path of the manifest of the lab's guest, which has the selftests:
/// see [`vm::Images`].
pub const ENV: &str = "NOBOUNCE_LAB";
/// Where parts of the kernel's source are in that guest's root file system.
pub const SOURCE: &str = "/linux";
/// The folder of all selftests in the kernel's source.
pub const SELFTESTS: &str = "tools/testing/selftests";
