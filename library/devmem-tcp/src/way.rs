// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which way payload took into memory: to see when the fast path was lost.

use std::fmt;

/// Which way payload took. All but the first cost at least one copy by the CPU, or may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Way {
    /// The NIC wrote it where it was wanted.
    Direct,
    /// It came through the bound queue, but was not split from its header
    /// ([`crate::rx::Received::linear`]).
    Linear,
    /// It came through another queue ([`crate::rx::Received::unsteered`]).
    Unsteered,
    /// The kernel copied it into the area ([`crate::zcrx::Receiver::copied`]). It counts that per queue, not per
    /// connection: it doesn't say which of them lost the fast path.
    Copied,
    /// Direct or copied: the kernel doesn't count what it copies.
    Unknown,
    /// An ordinary socket was asked for ([`crate::ordinary`]).
    Ordinary,
}

impl Way {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Direct,
        Self::Linear,
        Self::Unsteered,
        Self::Copied,
        Self::Unknown,
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
            Self::Unknown => "unknown",
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
    /// Bytes that a queue with a device received through io_uring, `copied` of which the kernel has counted
    /// ([`crate::zcrx::Receiver::copied`]), if it counts.
    #[must_use]
    pub fn through_io_uring(bytes: u64, copied: Option<u64>) -> Self {
        let mut counts = Self::default();
        match copied {
            Some(copied) => {
                counts.add(Way::Copied, copied.min(bytes));
                counts.add(Way::Direct, bytes.saturating_sub(copied));
            }
            None => counts.add(Way::Unknown, bytes),
        }
        counts
    }

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
        Way::ALL.iter().copied().zip(self.bytes)
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
        for (index, &way) in Way::ALL.iter().enumerate() {
            counts.add(way, 10u64.pow(index as u32));
            assert_eq!(counts.get(way), 10u64.pow(index as u32), "{way}");
        }
        let mut twice = counts;
        twice.add_all(counts);
        assert_eq!((counts.total(), twice.total()), (111111, 222222));
    }

    #[test]
    fn what_came_through_io_uring_is_direct_only_where_the_kernel_counts_what_it_copies() {
        let ways = |copied| {
            let counts = ByWay::through_io_uring(10, copied);
            [Way::Direct, Way::Copied, Way::Unknown].map(|way| counts.get(way))
        };
        assert_eq!(ways(Some(0)), [10, 0, 0]);
        assert_eq!(ways(Some(4)), [6, 4, 0]);
        assert_eq!(ways(Some(11)), [0, 10, 0]);
        assert_eq!(ways(None), [0, 0, 10]);
    }
}
