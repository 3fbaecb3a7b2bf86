// SPDX-License-Identifier: MIT OR Apache-2.0

//! What this program is called: `cargo xtask` in a checkout, `nobounce` where it is installed.

use std::env;
use std::path::PathBuf;

/// The folder of this package, where cargo runs it: not where a program runs it that cargo runs.
pub fn folder_of_cargo() -> Option<PathBuf> {
    // No other package describes itself so.
    let ours =
        env::var("CARGO_PKG_DESCRIPTION").is_ok_and(|it| it == env!("CARGO_PKG_DESCRIPTION"));
    let folder = env::var_os("CARGO_MANIFEST_DIR").filter(|_| ours);
    folder.map(PathBuf::from)
}

/// Whether cargo runs it.
pub fn by_cargo() -> bool {
    folder_of_cargo().is_some()
}

/// Its name where it is installed.
pub const INSTALLED: &str = "nobounce";

/// What a user types to run it.
pub fn name() -> &'static str {
    if by_cargo() { "cargo xtask" } else { INSTALLED }
}
