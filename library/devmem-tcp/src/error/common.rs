// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors that several parts share.

use std::io;

/// A system call failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {source}")]
pub struct SystemCall {
    /// What was tried.
    pub operation: &'static str,
    /// Why it failed.
    pub source: io::Error,
}

impl SystemCall {
    pub(crate) fn new(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Self {
            operation,
            source: source.into(),
        }
    }

    /// The errno, positive, if the kernel gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

/// A range is not inside a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes at offset {offset} are not inside a buffer of {buffer_len} bytes")]
pub struct OutOfRange {
    /// Start of the range, in bytes.
    pub offset: u64,
    /// Length of the range, in bytes.
    pub len: u64,
    /// Length of the buffer, in bytes.
    pub buffer_len: u64,
}

impl OutOfRange {
    /// Checks that `len` bytes at `offset` are inside `buffer_len` bytes.
    pub(crate) fn check(offset: u64, len: u64, buffer_len: u64) -> Result<(), Self> {
        match offset.checked_add(len) {
            Some(end) if end <= buffer_len => Ok(()),
            _ => Err(Self {
                offset,
                len,
                buffer_len,
            }),
        }
    }
}

/// Control messages of the kernel are cut, or do not agree with byte counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kernel's control messages do not add up: {what}")]
pub struct BadControlMessage {
    /// What does not add up.
    pub what: String,
}

impl From<String> for BadControlMessage {
    fn from(what: String) -> Self {
        Self { what }
    }
}
