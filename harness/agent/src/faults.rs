// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel's fault injection: one allocation of a request fails.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
};

use anyhow::{Context, Result};
use protocol::{Failure, kernel::Injected};
use serde_json::Value;

const FILE: &str = "/proc/thread-self/fail-nth";

/// Does `work` in this thread, failing the `nth` fault injection point it reaches.
///
/// Work that another thread does, such as in the peer's namespace, is not affected.
pub(crate) fn inject(nth: u32, work: impl FnOnce() -> Result<Value, Failure>) -> Result<Injected> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(FILE)
        .with_context(|| format!("opening {FILE}: does the kernel have FAULT_INJECTION?"))?;
    set(&file, nth)?;
    let reply = work();
    let left = left(&file);
    set(&file, 0)?;
    Ok(Injected {
        fired: left? == 0,
        reply,
    })
}

fn set(file: &File, nth: u32) -> Result<()> {
    file.write_all_at(nth.to_string().as_bytes(), 0)
        .with_context(|| format!("writing {nth} into {FILE}"))
}

/// How many more injection points had to be passed to reach the one that fails.
fn left(file: &File) -> Result<u32> {
    let mut text = [0; 16];
    let length = file
        .read_at(&mut text, 0)
        .with_context(|| format!("reading {FILE}"))?;
    let text = String::from_utf8_lossy(&text[..length]);
    text.trim()
        .parse()
        .with_context(|| format!("{FILE} says \"{text}\""))
}
