// SPDX-License-Identifier: MIT OR Apache-2.0

//! What was measured, as `Documentation/wire.json` has it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bench::figures::rounded;

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// What it was measured with.
    pub(crate) versions: String,
    /// Over wires that have a rate alone.
    pub(crate) paced: Vec<Goodput>,
    /// Over wires that are long, and lose or reorder frames.
    pub(crate) impaired: Vec<Goodput>,
    /// On our model and on QEMU's, over wires that take no time.
    pub(crate) models: Vec<Models>,
    /// Where device memory had what came.
    pub(crate) placements: Vec<Placement>,
}

impl Figures {
    /// Takes the parts of others that there are none of.
    pub(crate) fn fill(&mut self, others: Self) {
        fn take<T>(part: &mut Vec<T>, other: Vec<T>) {
            if part.is_empty() {
                *part = other;
            }
        }
        if self.versions.is_empty() {
            self.versions = others.versions;
        }
        take(&mut self.paced, others.paced);
        take(&mut self.impaired, others.impaired);
        take(&mut self.models, others.models);
        take(&mut self.placements, others.placements);
    }
}

/// The median of repeats, the least and the most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Repeats {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Repeats {
    /// Of at least one value.
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().map_or(f64::NAN, rounded);
        Self {
            median: at(values.len() / 2),
            low: at(0),
            high: at(values.len().saturating_sub(1)),
        }
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} to {})", self.median, self.low, self.high)
    }
}

/// How much payload came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Goodput {
    pub(crate) mtu: u32,
    /// How it was sent and received.
    pub(crate) way: String,
    /// Bits per second of the wire.
    pub(crate) rate: u64,
    /// How long a frame is on its way, in microseconds.
    pub(crate) delay_us: u64,
    pub(crate) loss_ppm: u32,
    pub(crate) reorder_ppm: u32,
    /// Payload, in bits per second.
    pub(crate) goodput: Repeats,
    /// That of what the wire can carry.
    pub(crate) share: Repeats,
    /// Segments that were sent again.
    pub(crate) sent_again: Repeats,
    /// Of the time, in which a program on the host waited for a processor; 0 if it does not say.
    pub(crate) busy: Repeats,
}

/// A transfer of the same bytes on two models of the NIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Models {
    pub(crate) mtu: u32,
    /// How it was sent and received; `boot` is a guest's way up to where both NICs have a link.
    pub(crate) what: String,
    /// Seconds that it took on our model.
    pub(crate) ours: Repeats,
    /// On QEMU's.
    pub(crate) igb: Repeats,
    /// QEMU's by ours, of each repeat.
    pub(crate) ratio: Repeats,
}

/// Where the pieces of a stream lay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Placement {
    pub(crate) mtu: u32,
    /// Bytes of a receive buffer.
    pub(crate) buffer: u32,
    pub(crate) loss_ppm: u32,
    pub(crate) reorder_ppm: u32,
    /// Tokens went back at once; else after the last byte, so that buffers are filled by their addresses.
    pub(crate) recycled: bool,
    /// Bytes of the stream.
    pub(crate) bytes: u64,
    /// Of pairs of successive pieces, those of which the second is right behind the first, or at the
    /// beginning of the next buffer.
    pub(crate) pairs: f64,
    /// Of all bytes, those in runs of such pieces of 64 KiB or more.
    pub(crate) in_runs: f64,
    /// The same, where only a piece that is right behind the other continues a run.
    pub(crate) contiguous: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_repeats_the_median_counts_and_the_extremes_are_told() {
        let repeats = Repeats::new(vec![3.0, 1.0, 2.0]);
        assert_eq!((repeats.median, repeats.low, repeats.high), (2.0, 1.0, 3.0));
    }
}
