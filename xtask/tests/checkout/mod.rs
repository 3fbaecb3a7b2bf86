// SPDX-License-Identifier: MIT OR Apache-2.0

//! The checkout that a test runs in. It may have been moved or copied with what was built in it, and cargo
//! doesn't build anew for that: a path that was known when the test was compiled is in the old place.

use std::env;
use std::path::PathBuf;

/// The root.
pub(crate) fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs this");
    PathBuf::from(package).join("..").canonicalize().unwrap()
}

/// A program that was built with the test, which is in a folder of its own beside it.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = env::current_exe().unwrap().with_file_name("../").join(name);
    let path = path.canonicalize();
    path.unwrap_or_else(|error| panic!("{name}, which the workspace's tests build: {error}"))
}

/// What is being tested.
pub(crate) fn nobounce() -> PathBuf {
    program("nobounce")
}
