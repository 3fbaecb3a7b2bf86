// SPDX-License-Identifier: MIT OR Apache-2.0

//! The part of the debug kernel's cases that a change must pass.

/// The nextest profile of `.config/nextest.toml` that says which cases these are.
pub(super) const PROFILE: &str = "debug-part";

/// nextest's words for all cases, also those that want the debug kernel and are ignored elsewhere.
pub(super) const CASES: [&str; 4] = ["-p", "cases", "--run-ignored", "all"];

/// What building the debug kernel and running the part may take where other things run, too.
pub(super) const MINUTES: i64 = 45;
