// SPDX-License-Identifier: MIT OR Apache-2.0

//! What becomes of a plan.

use std::fmt;

use crate::CaseError;

/// How a driver came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was lost.
    Unharmed,
    /// Something was, and then all worked again by itself.
    Recovered,
    /// It worked again once the interface was brought up anew.
    Restarted,
    /// It worked again once the driver was bound anew.
    Detached,
}

/// What must not happen, whatever a device does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Harm {
    /// The driver did what it must not do, as the model says.
    Violation(String),
    /// The kernel complained.
    Panic(String),
    /// The guest does not answer, or nothing works any more.
    Hang(String),
    /// Wrong bytes came as good.
    WrongBytes(String),
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, text) = match self {
            Self::Violation(text) => ("violation", text),
            Self::Panic(text) => ("panic", text),
            Self::Hang(text) => ("hang", text),
            Self::WrongBytes(text) => ("wrong bytes", text),
        };
        write!(f, "{what}: {text}")
    }
}

impl From<vm::Error> for Harm {
    fn from(error: vm::Error) -> Self {
        let text = error.to_string();
        match error {
            vm::Error::Violated { .. } => Self::Violation(text),
            vm::Error::Timeout { .. } => Self::Hang(text),
            _ => Self::Panic(text),
        }
    }
}

impl From<CaseError> for Harm {
    fn from(error: CaseError) -> Self {
        Self::Hang(error.to_string())
    }
}
