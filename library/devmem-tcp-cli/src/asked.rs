// SPDX-License-Identifier: MIT OR Apache-2.0

//! What was asked of the kernel, and why there is no answer.

use devmem_tcp::RequestError;
use serde::Serialize;

/// An answer, or the reason why there is none: that doesn't end a command. In JSON it is the answer, or
/// an object whose only field is `lacks` or `unknown`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Asked<T> {
    /// The answer.
    Known(T),
    /// This kernel, or this driver, hasn't got it.
    Lacks {
        /// What is lacking.
        lacks: String,
    },
    /// It could not be asked.
    Unknown {
        /// Why.
        unknown: String,
    },
}

impl<T> Asked<T> {
    /// There is none.
    pub(crate) fn lacks(what: impl ToString) -> Self {
        Self::Lacks {
            lacks: what.to_string(),
        }
    }

    /// It could not be asked.
    pub(crate) fn unknown(why: impl ToString) -> Self {
        Self::Unknown {
            unknown: why.to_string(),
        }
    }

    /// The answer, if there is one.
    pub(crate) fn known(&self) -> Option<&T> {
        match self {
            Self::Known(answer) => Some(answer),
            _ => None,
        }
    }

    /// Why there is no answer.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Lacks { lacks: reason } | Self::Unknown { unknown: reason } => Some(reason),
        }
    }

    /// Makes something else of the answer.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Asked<U> {
        match self {
            Self::Known(answer) => Asked::Known(make(answer)),
            Self::Lacks { lacks } => Asked::Lacks { lacks },
            Self::Unknown { unknown } => Asked::Unknown { unknown },
        }
    }
}

impl<T> From<Result<T, RequestError>> for Asked<T> {
    fn from(answer: Result<T, RequestError>) -> Self {
        match answer {
            Ok(answer) => Self::Known(answer),
            // As an ioctl without such a command answers (dev_ethtool in net/ethtool/ioctl.c).
            Err(RequestError::Unsupported { operation, .. }) => {
                Self::lacks(format!("the driver doesn't offer {operation}"))
            }
            Err(error @ RequestError::KernelTooOld { .. }) => Self::lacks(error),
            Err(error) => Self::unknown(error),
        }
    }
}
