// SPDX-License-Identifier: MIT OR Apache-2.0

//! How a case fails.

use std::{error::Error, fmt};

/// Result of a case.
pub type Result<T = ()> = std::result::Result<T, CaseError>;

/// Any error, shown with its causes: what the test runner prints is what a person reads.
pub struct CaseError(String);

impl CaseError {
    /// A failure in words.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl<E: Error> From<E> for CaseError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self(text)
    }
}

impl fmt::Debug for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
