// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Which bytes a descriptor works on.
//!
//! ```text
//!        63            32 31             0
//! qword0 |   length      | source offset |
//! qword1 |       destination offset      |
//! ```
//!
//! The layout is that of NCCL's unpack metadata (`union loadMeta`, `src_off`, `len`, `dst_off`), which a
//! receiver of device memory gives to a GPU.

/// Bytes of a fragment.
pub const SIZE: usize = 16;

/// Bytes to work on. Offsets are added to the bases of the descriptor.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Fragment {
    /// Where they come from, in bytes.
    pub source: u32,
    /// How many they are.
    pub len: u32,
    /// Where they go, in bytes.
    pub destination: u64,
}

impl Fragment {
    /// The bytes in memory.
    #[inline]
    pub const fn encode(self) -> [u8; SIZE] {
        let quadwords = self.len as u128;
        let value = self.source as u128 | quadwords << 32 | (self.destination as u128) << 64;
        value.to_le_bytes()
    }

    /// The inverse of [`encode`](Self::encode).
    #[inline]
    pub const fn decode(bytes: [u8; SIZE]) -> Self {
        let value = u128::from_le_bytes(bytes);
        Self {
            source: value as u32,
            len: (value >> 32) as u32,
            destination: (value >> 64) as u64,
        }
    }
}
