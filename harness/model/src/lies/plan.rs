// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a device is to lie about, and when: made from a seed, or written down.

use std::fmt;

use rand_pcg::{Pcg64Mcg, rand_core::Rng};
use serde::{Deserialize, Serialize};

/// Most lies of a plan that a seed makes.
const MOST: u64 = 3;
/// How often a lie is told, and how many occasions pass before, at most.
const TIMES: [u32; 6] = [1, 1, 2, 10, 100, u32::MAX];
const AFTER: u64 = 40;
/// Of so many plans one has a lie that was thought of later: about as many as of any other kind.
const LATER: u64 = 8;

/// What a lie is about, which is also the occasion to tell it. The text is what it is called in plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A packet whose headers could be split off is not split.
    Unsplit,
    /// PKT_LEN of a receive descriptor: 0, more than the buffer has, or anything.
    Length,
    /// HDR_LEN, up to more than the header buffer has.
    HeaderLength,
    /// SPH, or HBO.
    SplitFlag,
    /// Status and error bits but DD and EOP, also those that no datasheet allows.
    Status,
    /// The packet type, and the RSS type.
    PacketType,
    /// The hash.
    Hash,
    /// The tag, beyond what a VLAN's number can be, of a packet that has none.
    Vlan,
    /// EOP: a packet goes on that doesn't, or ends early.
    EndOfPacket,
    /// A timestamp that was never taken.
    Timestamp,
    /// A bit of the payload differs, and the checksum is said to be right.
    Corrupt,
    /// A descriptor is done, and its buffers were not written.
    NoData,
    /// A descriptor is never written back.
    Missing,
    /// A descriptor is written back after those that were filled later.
    Late,
    /// A descriptor is reported as done before anything was received for it.
    Premature,
    /// A descriptor is written back a second time, after the driver has taken it and perhaps posted it again.
    Repeated,
    /// A received packet vanishes.
    Lost,
    /// A received packet goes to another queue than its headers say.
    Queue,
    /// A transmit queue does not go on.
    Hang,
    /// A transmit descriptor that asked for a report gets none.
    NoReport,
    /// A transmit descriptor is reported that is not posted: once more, or before it ever was.
    StrayReport,
    /// A packet is reported, and not sent.
    Unsent,
    /// An interrupt does not come.
    LostInterrupt,
    /// An interrupt comes without a cause, of any vector.
    SpuriousInterrupt,
    /// ICR has causes that did not occur.
    SpuriousCause,
    /// A register reads as all ones, as that of a device that is gone.
    Ones,
    /// A register reads as anything.
    Garbage,
    /// A write to a tail or to an interrupt's mask is lost.
    LostWrite,
    /// A queue that was disabled never says that it has come to rest.
    Stuck,
    /// The link goes down for a moment.
    LinkFlap,
    /// A timestamp of a sent packet is there that nobody asked for, and the clock jumps.
    Clock,
    /// A queue that rests goes on writing to memory that it had. The model itself refuses that, and says so.
    AfterStop,
}

impl Kind {
    /// All that a driver can come through, or nothing of which harms it: the plans of seeds are of these. Those from
    /// `EARLIEST` on have a draw of their own, so that plans keep their other lies.
    pub const ALL: [Self; 31] = [
        Self::Unsplit,
        Self::Length,
        Self::HeaderLength,
        Self::SplitFlag,
        Self::Status,
        Self::PacketType,
        Self::Hash,
        Self::Vlan,
        Self::EndOfPacket,
        Self::Timestamp,
        Self::Corrupt,
        Self::NoData,
        Self::Missing,
        Self::Late,
        Self::Premature,
        Self::Lost,
        Self::Hang,
        Self::NoReport,
        Self::StrayReport,
        Self::Unsent,
        Self::LostInterrupt,
        Self::SpuriousInterrupt,
        Self::SpuriousCause,
        Self::Ones,
        Self::Garbage,
        Self::LostWrite,
        Self::Stuck,
        Self::LinkFlap,
        Self::Clock,
        Self::Repeated,
        Self::Queue,
    ];

    /// How many there were at first.
    const EARLIEST: usize = 29;

    /// Those that an accelerator's engine tells. To it a completion is a report, what it says about bytes a
    /// length, and its doorbells are tails.
    pub const OF_ENGINE: [Self; 14] = [
        Self::Length,
        Self::Status,
        Self::NoData,
        Self::Hang,
        Self::NoReport,
        Self::LostInterrupt,
        Self::SpuriousInterrupt,
        Self::Ones,
        Self::Garbage,
        Self::LostWrite,
        Self::Stuck,
        Self::Premature,
        Self::Late,
        Self::Repeated,
    ];

    /// As [`Self::EARLIEST`], of those.
    const EARLIEST_OF_ENGINE: usize = 11;
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lie {
    /// What it is about.
    pub kind: Kind,
    /// On how many occasions the truth is told before.
    pub after: u32,
    /// How often it is told.
    pub times: u32,
    /// What is said first: each kind takes of it what it needs.
    pub value: u64,
}

impl Lie {
    /// One that is told once, on the first occasion.
    #[must_use]
    pub const fn once(kind: Kind, value: u64) -> Self {
        Self {
            kind,
            after: 0,
            times: 1,
            value,
        }
    }

    /// What is said the next time, after it was told so often: another one each time, up to 64.
    #[must_use]
    pub const fn value_after(&self, told: u32) -> u64 {
        self.value.rotate_left(told % u64::BITS)
    }
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            after,
            times,
            value,
        } = self;
        write!(f, "{kind}: after {after} occasions, ")?;
        match *times {
            1 => f.write_str("once")?,
            u32::MAX => f.write_str("on each")?,
            times => write!(f, "{times} times")?,
        }
        write!(f, ", value {value:#x}")
    }
}

/// The lies that a device tells.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// All of them, each with its own count.
    pub lies: Vec<Lie>,
}

impl Plan {
    /// The plan of a seed for a NIC: always the same, of up to three lies.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self::of_both(Kind::ALL.split_at(Kind::EARLIEST), seed)
    }

    /// The plan of a seed for an accelerator's engine.
    #[must_use]
    pub fn of_engine(seed: u64) -> Self {
        Self::of_both(Kind::OF_ENGINE.split_at(Kind::EARLIEST_OF_ENGINE), seed)
    }

    fn of_both((earliest, later): (&[Kind], &[Kind]), seed: u64) -> Self {
        let mut plan = Self::of_kinds(earliest, seed);
        // Another seed than any of the first draw's.
        let mut of_later = Self::of_kinds(later, !seed);
        if seed % LATER == LATER / 2 {
            plan.lies.extend(of_later.lies.pop());
        }
        plan
    }

    fn of_kinds(kinds: &[Kind], seed: u64) -> Self {
        // Neighbouring seeds are far apart.
        let mut random =
            Pcg64Mcg::new(u128::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) << 1 | 1);
        random.advance(u128::from(seed) << 64 | 0x10);
        let mut below = |count: u64| random.next_u64() % count;
        let lies = (0..=below(MOST)).map(|_| Lie {
            // CAST: Both are small.
            kind: kinds[below(kinds.len() as u64) as usize],
            after: below(AFTER) as u32,
            times: TIMES[below(TIMES.len() as u64) as usize],
            value: below(u64::MAX),
        });
        Self {
            lies: lies.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_lie_is_shown_in_words() {
        let lie = Lie {
            after: 3,
            times: u32::MAX,
            ..Lie::once(Kind::LostWrite, 16)
        };
        let text = "lost-write: after 3 occasions, on each, value 0x10";
        assert_eq!(lie.to_string(), text);
    }

    #[test]
    fn seeds_make_all_kinds() {
        let kinds = |plan: fn(u64) -> Plan| {
            let lies = (0..1000).flat_map(|seed| plan(seed).lies);
            lies.map(|lie| lie.kind).collect::<BTreeSet<_>>()
        };
        assert_eq!(kinds(Plan::from_seed), Kind::ALL.into());
        assert_eq!(kinds(Plan::of_engine), Kind::OF_ENGINE.into());
    }
}
