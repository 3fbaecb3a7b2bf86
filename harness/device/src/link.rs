// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a wire does to its frames, beside carrying them: how fast it is, how long it is, and which frames
//! it loses, reorders, duplicates or damages.
//!
//! The fate of a frame depends on the link's seed, the direction and the frame's number alone, and neither
//! on the time nor on its content.

use std::{num::NonZeroU64, time::Duration};

use rand_pcg::{
    Pcg64,
    rand_core::{Rng, SeedableRng},
};

const MILLION: u32 = 1_000_000;
/// Most frames that overtake one that is held.
const MOST_OVERTAKERS: u32 = 3;
/// Bytes that a frame takes on a wire beside its own: preamble, frame check sequence and gap.
const OVERHEAD: u64 = 24;
/// Bytes of the shortest frame, without its check sequence. What is shorter is padded.
const SHORTEST: u64 = 60;

/// A probability, in parts per million.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chance(u32);

impl Chance {
    /// So many parts of a million; `None` if there are more.
    #[must_use]
    pub const fn per_million(parts: u32) -> Option<Self> {
        match parts {
            0..=MILLION => Some(Self(parts)),
            _ => None,
        }
    }

    /// Whether it comes true, by a random number.
    fn holds(self, random: u64) -> bool {
        below(MILLION, random) < self.0
    }
}

/// Makes a random number one that is less than `end`.
fn below(end: u32, random: u64) -> u32 {
    ((u128::from(random) * u128::from(end)) >> 64) as u32
}

/// The properties of a wire, alike in both directions. The default is one that does nothing but carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// Bits per second. Frames leave one after the other, each with what surrounds it on a wire; a limited
    /// number waits, and what finds no room is dropped. Without it, a frame takes no time to leave.
    pub rate: Option<NonZeroU64>,
    /// How long a frame is on its way after it has left.
    pub delay: Duration,
    /// That a frame does not arrive.
    pub loss: Chance,
    /// That one to three later frames overtake a frame, if they come soon.
    pub reorder: Chance,
    /// That a frame arrives twice. The second one is as it was sent, even if the first is damaged.
    pub duplicate: Chance,
    /// That a bit of a frame is flipped, so that its check sequence is wrong.
    pub corrupt: Chance,
    /// What decides all of that.
    pub seed: u64,
}

impl Link {
    /// Whether all frames arrive at once and as they were sent.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let plain = Self {
            seed: self.seed,
            ..Self::default()
        };
        *self == plain
    }

    /// What happens to the frames of each direction.
    #[must_use]
    pub fn fates(&self) -> [Fates; 2] {
        let mut seeds = Pcg64::seed_from_u64(self.seed);
        [(), ()].map(|()| Fates {
            link: *self,
            random: Pcg64::from_rng(&mut seeds),
        })
    }

    /// How long a frame of so many bytes, without its check sequence, takes to leave, in nanoseconds.
    #[must_use]
    pub fn serialization(&self, bytes: usize) -> u64 {
        let Some(rate) = self.rate else {
            return 0;
        };
        let bytes = (bytes as u64).max(SHORTEST).saturating_add(OVERHEAD);
        let time = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(rate.get().into());
        u64::try_from(time).unwrap_or(u64::MAX)
    }
}

/// What happens to a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// It does not arrive, whatever else is said.
    pub lost: bool,
    /// It arrives twice.
    pub duplicated: bool,
    /// How many later frames overtake it.
    pub overtakers: u32,
    /// It is damaged.
    pub damage: Option<Damage>,
}

/// Which bit of a frame is flipped, whatever its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage(u64);

impl Damage {
    /// Flips it. A frame without bytes stays as it is.
    pub fn inflict(self, frame: &mut [u8]) {
        let bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let bit = below(bytes.saturating_mul(8), self.0);
        if let Some(byte) = frame.get_mut(bit as usize / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

/// The fates of the frames of one direction, in the order in which they are sent.
#[derive(Debug, Clone)]
pub struct Fates {
    link: Link,
    random: Pcg64,
}

impl Iterator for Fates {
    type Item = Fate;

    /// There is always one more.
    fn next(&mut self) -> Option<Fate> {
        // All are drawn for each frame: a chance that is changed leaves what the others decide.
        let mut draw = || self.random.next_u64();
        let [loss, duplicate, reorder, overtakers, corrupt, bit] = [(); 6].map(|()| draw());
        let link = &self.link;
        Some(Fate {
            lost: link.loss.holds(loss),
            duplicated: link.duplicate.holds(duplicate),
            overtakers: match link.reorder.holds(reorder) {
                true => 1 + below(MOST_OVERTAKERS, overtakers),
                false => 0,
            },
            damage: link.corrupt.holds(corrupt).then_some(Damage(bit)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAMES: usize = 100_000;

    fn chance(parts: u32) -> Chance {
        Chance::per_million(parts).unwrap()
    }

    fn link(parts: u32, seed: u64) -> Link {
        Link {
            loss: chance(parts),
            reorder: chance(parts),
            duplicate: chance(parts),
            corrupt: chance(parts),
            seed,
            ..Link::default()
        }
    }

    fn fates(link: &Link, direction: usize, count: usize) -> Vec<Fate> {
        link.fates()[direction].clone().take(count).collect()
    }

    #[test]
    fn a_chance_is_at_most_certain() {
        assert_eq!(Chance::per_million(MILLION + 1), None);
        for random in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(chance(MILLION).holds(random));
            assert!(!chance(0).holds(random));
        }
    }

    #[test]
    fn only_a_link_that_does_something_is_not_plain() {
        assert!(link(0, 7).is_plain());
        assert!(!link(1, 7).is_plain());
        let delay = Duration::from_nanos(1);
        assert!(
            !Link {
                delay,
                ..link(0, 0)
            }
            .is_plain()
        );
        let rate = NonZeroU64::new(1);
        assert!(!Link { rate, ..link(0, 0) }.is_plain());
    }

    #[test]
    fn a_frame_takes_its_bits_and_what_surrounds_them() {
        let at = |rate| Link {
            rate: NonZeroU64::new(rate),
            ..Link::default()
        };
        assert_eq!(at(1_000_000_000).serialization(1514), 1538 * 8);
        assert_eq!(at(1_000_000_000).serialization(1), 84 * 8, "padded");
        assert_eq!(at(8).serialization(976), 1_000_000_000_000);
        assert_eq!(at(3).serialization(60), 224_000_000_000);
        assert_eq!(at(0).serialization(1514), 0);
    }

    #[test]
    fn each_chance_comes_true_as_often_as_was_asked() {
        for parts in [5_000, 10_000, 250_000] {
            let fates = fates(&link(parts, 1), 0, FRAMES);
            let expected = FRAMES as f64 * f64::from(parts) / f64::from(MILLION);
            let counts = [
                fates.iter().filter(|fate| fate.lost).count(),
                fates.iter().filter(|fate| fate.duplicated).count(),
                fates.iter().filter(|fate| fate.overtakers > 0).count(),
                fates.iter().filter(|fate| fate.damage.is_some()).count(),
            ];
            // Five standard deviations.
            let most = 5.0 * expected.sqrt();
            for count in counts {
                assert!((count as f64 - expected).abs() < most, "{counts:?}");
            }
        }
    }

    #[test]
    fn one_to_three_frames_overtake_and_each_is_as_likely() {
        let fates = fates(&link(MILLION, 1), 0, FRAMES);
        for overtakers in 1..=MOST_OVERTAKERS {
            let count = fates.iter().filter(|fate| fate.overtakers == overtakers);
            assert!((32_000..35_000).contains(&count.count()));
        }
    }

    #[test]
    fn directions_and_seeds_differ() {
        let link = |seed| link(500_000, seed);
        let [one, other] = [0, 1].map(|direction| fates(&link(7), direction, 100));
        assert_ne!(one, other);
        assert_ne!(one, fates(&link(8), 0, 100));
    }

    proptest! {
        #[test]
        fn the_same_seed_gives_the_same_fates(parts in 0..=MILLION, seed: u64) {
            for direction in [0, 1] {
                let first = fates(&link(parts, seed), direction, 100);
                prop_assert_eq!(first, fates(&link(parts, seed), direction, 100));
            }
        }

        #[test]
        fn a_chance_leaves_what_others_decide(parts in 0..=MILLION, seed: u64) {
            let whole = link(500_000, seed);
            let other = Link { loss: chance(parts), ..whole };
            for (one, other) in fates(&whole, 0, 100).iter().zip(fates(&other, 0, 100)) {
                prop_assert_eq!(Fate { lost: other.lost, ..*one }, other);
            }
        }

        #[test]
        fn damage_is_one_bit(bit: u64, frame in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut damaged = frame.clone();
            Damage(bit).inflict(&mut damaged);
            let pairs = frame.iter().zip(&damaged);
            let flipped: u32 = pairs.map(|(one, other)| (one ^ other).count_ones()).sum();
            prop_assert_eq!(flipped, u32::from(!frame.is_empty()));
        }
    }
}
