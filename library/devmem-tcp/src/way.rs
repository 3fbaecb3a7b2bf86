// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which way payload took into memory: to see when the fast path was lost.

use std::fmt;

/// Which way payload took. All but the first cost a copy at least, by a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Way {
    /// The NIC wrote it where it was wanted.
    Direct,
    /// It came through the bound queue, but was not split from its header
    /// ([`crate::rx::Received::linear`]).
    Linear,
    /// It came through another queue ([`crate::rx::Received::unsteered`]).
    Unsteered,
    /// The kernel copied it into the area ([`crate::zcrx::Receiver::copied`]).
    Copied,
    /// An ordinary socket was asked for ([`crate::ordinary`]).
    Ordinary,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Direct,
        Self::Linear,
        Self::Unsteered,
        Self::Copied,
        Self::Ordinary,
    ];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Linear => "linear",
            Self::Unsteered => "unsteered",
            Self::Copied => "copied",
            Self::Ordinary => "ordinary",
        })
    }
}

/// Bytes by the way that they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ByWay {
    bytes: [u64; Way::ALL.len()],
}

impl ByWay {
    /// Counts bytes.
    pub fn add(&mut self, way: Way, bytes: u64) {
        self.bytes[way as usize] += bytes;
    }

    /// Adds all that another one has counted.
    pub fn add_all(&mut self, other: Self) {
        for (way, bytes) in other.iter() {
            self.add(way, bytes);
        }
    }

    /// The bytes that took a way.
    #[must_use]
    pub fn get(&self, way: Way) -> u64 {
        self.bytes[way as usize]
    }

    /// Each way with its bytes.
    pub fn iter(&self) -> impl Iterator<Item = (Way, u64)> + use<> {
        Way::ALL.into_iter().zip(self.bytes)
    }

    /// All bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_way_and_together() {
        let mut counts = ByWay::default();
        for (index, way) in Way::ALL.into_iter().enumerate() {
            counts.add(way, 10u64.pow(index as u32));
            assert_eq!(counts.get(way), 10u64.pow(index as u32), "{way}");
        }
        let mut twice = counts;
        twice.add_all(counts);
        assert_eq!((counts.total(), twice.total()), (11111, 22222));
    }
}
