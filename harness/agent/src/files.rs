// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files of sysfs, procfs and debugfs, and the kernel's log.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
};

use anyhow::{Context, Result, bail};

/// Largest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// Reads a file of text.
pub(crate) fn read(path: &str) -> Result<String> {
    let file = File::open(path).with_context(|| format!("opening {path}"))?;
    let mut text = String::new();
    let read = file.take(MAX_FILE + 1).read_to_string(&mut text);
    let len = read.with_context(|| format!("reading {path}"))?;
    if len as u64 > MAX_FILE {
        bail!("{path} is larger than {MAX_FILE} bytes");
    }
    Ok(text)
}

/// Writes to an existing file with one call, as the kernel's attribute files require.
pub(crate) fn write(path: &str, contents: &str) -> Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .open(path)
        .with_context(|| format!("opening {path}"))?;
    let written = file
        .write(contents.as_bytes())
        .with_context(|| format!("writing \"{contents}\" into {path}"))?;
    if written != contents.len() {
        bail!("{path} took {written} of {} bytes", contents.len());
    }
    Ok(())
}

/// Writes a line into the kernel's log, or to the console where there is no log.
pub(crate) fn log_line(text: &str) {
    // The log cuts a write at the first newline, and a panic's message has several.
    for line in text.lines() {
        // Priority 4, a warning: visible on the console whatever the log level of a test.
        if write("/dev/kmsg", &format!("<4>{line}\n")).is_err() {
            eprintln!("{line}");
        }
    }
}
