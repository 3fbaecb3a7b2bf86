// SPDX-License-Identifier: MIT OR Apache-2.0

//! Bytes as they are printed where something differs.

use std::fmt;

/// Bytes that are shown in hexadecimal digits, and how many they are.
#[derive(Clone, PartialEq, Eq)]
pub struct Hex<T>(pub T);

impl<T: AsRef<[u8]>> fmt::Debug for Hex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_ref();
        write!(f, "{}:", bytes.len())?;
        bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
