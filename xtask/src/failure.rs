// SPDX-License-Identifier: MIT OR Apache-2.0

//! Failures of what this program uses, as its own.

/// A case's failure as this program's.
pub(crate) fn of_case(error: cases::CaseError) -> anyhow::Error {
    anyhow::Error::msg(error.to_string())
}
