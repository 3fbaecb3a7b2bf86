// SPDX-License-Identifier: MIT OR Apache-2.0

//! What this program is called: `cargo xtask` in a checkout, `nobounce` where it is installed.

use std::env;

/// Whether cargo runs it.
pub(crate) fn by_cargo() -> bool {
    env::var_os("CARGO_MANIFEST_DIR").is_some()
}

/// Its name where it is installed.
pub(crate) const INSTALLED: &str = "nobounce";

/// What a user types to run it.
pub(crate) fn name() -> &'static str {
    if by_cargo() { "cargo xtask" } else { INSTALLED }
}
