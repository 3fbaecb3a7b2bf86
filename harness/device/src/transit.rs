// SPDX-License-Identifier: MIT OR Apache-2.0

//! The frames that are on their way over a link, in one direction. Times are nanoseconds since any moment,
//! and the caller's: nothing here waits.
//!
//! What happens is ordered by the times at which it is due, so that a caller that comes late sees the same
//! frames in the same order.

use std::collections::VecDeque;

use crate::link::{Fates, Link};

/// Most frames that wait for the line, with the one that is leaving.
const LONGEST_QUEUE: usize = 1000;
/// How long a frame waits to be overtaken, in nanoseconds: the last one of a burst arrives, too, and long
/// before TCP would send it again.
const HOLD: u64 = 5_000_000;

/// A frame that has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Its bytes, without the frame check sequence.
    pub(crate) frame: Vec<u8>,
    /// Whether its check sequence is wrong.
    pub(crate) damaged: bool,
}

impl Arrival {
    /// A frame as it was sent.
    pub(crate) fn whole(frame: Vec<u8>) -> Self {
        Self {
            frame,
            damaged: false,
        }
    }
}

/// A frame on its way, or held.
#[derive(Debug)]
struct Traveller {
    arrival: Arrival,
    /// When it arrives, or is let go at the latest.
    due: u64,
    /// How many frames are still to overtake it.
    overtakers: u32,
}

#[derive(Debug)]
pub(crate) struct Transit {
    link: Link,
    fates: Fates,
    /// When each frame that waits for the line has left.
    leaving: VecDeque<u64>,
    /// When the last one has.
    free: u64,
    /// In the order in which they arrive.
    coming: VecDeque<Traveller>,
    /// In the order in which they would have arrived.
    held: VecDeque<Traveller>,
}

impl Transit {
    pub(crate) fn new(link: Link, fates: Fates) -> Self {
        Self {
            link,
            fates,
            leaving: VecDeque::new(),
            free: 0,
            coming: VecDeque::new(),
            held: VecDeque::new(),
        }
    }

    /// Sends a frame. The time must never go backwards.
    pub(crate) fn send(&mut self, frame: Vec<u8>, now: u64) {
        // Also that of a frame that finds no room: the fates of those after it don't depend on the time.
        let fate = self.fates.next().unwrap_or_default();
        let Some(left) = self.leave(frame.len(), now) else {
            return;
        };
        if fate.lost {
            return;
        }
        let delay = u64::try_from(self.link.delay.as_nanos()).unwrap_or(u64::MAX);
        let copy = fate.duplicated.then(|| Arrival::whole(frame.clone()));
        let mut arrival = Arrival::whole(frame);
        if let Some(damage) = fate.damage {
            damage.inflict(&mut arrival.frame);
            arrival.damaged = true;
        }
        let both = [Some(arrival), copy].into_iter().flatten();
        self.coming.extend(both.map(|arrival| Traveller {
            arrival,
            due: left.saturating_add(delay),
            overtakers: fate.overtakers,
        }));
    }

    /// Puts a frame on the line; returns when it has left, or `None` if too many wait.
    fn leave(&mut self, bytes: usize, now: u64) -> Option<u64> {
        if self.link.rate.is_none() {
            return Some(now);
        }
        while self.leaving.front().is_some_and(|left| *left <= now) {
            self.leaving.pop_front();
        }
        if self.leaving.len() >= LONGEST_QUEUE {
            return None;
        }
        let takes = self.link.serialization(bytes);
        self.free = self.free.max(now).saturating_add(takes);
        self.leaving.push_back(self.free);
        Some(self.free)
    }

    /// Takes the next frame that has arrived by now.
    pub(crate) fn arrive(&mut self, now: u64) -> Option<Arrival> {
        loop {
            let overtaken = self.held.iter().position(|held| held.overtakers == 0);
            if let Some(at) = overtaken {
                return self.let_go(at);
            }
            let coming = self.coming.front().map_or(u64::MAX, |next| next.due);
            let held = self.held.front().map_or(u64::MAX, |next| next.due);
            if coming.min(held) > now {
                return None;
            }
            if held <= coming {
                return self.let_go(0);
            }
            let mut next = self.coming.pop_front()?;
            if next.overtakers == 0 {
                overtake(self.held.iter_mut());
                return Some(next.arrival);
            }
            next.due = next.due.saturating_add(HOLD);
            self.held.push_back(next);
        }
    }

    /// When the next frame arrives.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let ready = self.held.iter().find(|held| held.overtakers == 0);
        let ready = ready.map(|_| 0);
        let next = [self.coming.front(), self.held.front()];
        ready.or_else(|| next.into_iter().flatten().map(|next| next.due).min())
    }

    /// Lets a frame go that was held. It has overtaken those that are held longer.
    fn let_go(&mut self, at: usize) -> Option<Arrival> {
        overtake(self.held.range_mut(..at));
        Some(self.held.remove(at)?.arrival)
    }
}

fn overtake<'a>(held: impl Iterator<Item = &'a mut Traveller>) {
    for held in held {
        held.overtakers = held.overtakers.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU64, time::Duration};

    use proptest::prelude::*;

    use super::*;
    use crate::link::Chance;

    fn transit(link: Link) -> Transit {
        let [fates, _] = link.fates();
        Transit::new(link, fates)
    }

    fn chance(parts: u32) -> Chance {
        Chance::per_million(parts).unwrap()
    }

    /// A frame of its number.
    fn frame(number: u32) -> Vec<u8> {
        number.to_le_bytes().to_vec()
    }

    /// All that arrives by a time.
    fn arrivals(transit: &mut Transit, now: u64) -> Vec<Arrival> {
        std::iter::from_fn(|| transit.arrive(now)).collect()
    }

    fn numbers(arrivals: &[Arrival]) -> Vec<u32> {
        let number = |arrival: &Arrival| u32::from_le_bytes(arrival.frame[..].try_into().unwrap());
        arrivals.iter().map(number).collect()
    }

    /// What becomes of so many frames, one every 10 µs.
    fn carry(link: Link, count: u32) -> Vec<Arrival> {
        let mut transit = transit(link);
        for number in 0..count {
            transit.send(frame(number), u64::from(number) * 10_000);
        }
        arrivals(&mut transit, u64::MAX)
    }

    #[test]
    fn a_frame_arrives_after_the_delay_and_not_before() {
        let mut transit = transit(Link {
            delay: Duration::from_micros(500),
            ..Link::default()
        });
        assert_eq!(transit.deadline(), None);
        transit.send(frame(1), 1_000);
        transit.send(frame(2), 2_000);
        assert_eq!(transit.deadline(), Some(501_000));
        assert_eq!(transit.arrive(500_999), None);
        assert_eq!(numbers(&arrivals(&mut transit, 501_000)), [1]);
        assert_eq!(transit.deadline(), Some(502_000));
    }

    #[test]
    fn frames_leave_at_the_rate_and_the_queue_is_dropped_at_its_tail() {
        let mut transit = transit(Link {
            rate: NonZeroU64::new(1_000_000_000),
            ..Link::default()
        });
        for number in 0..1001 {
            transit.send(frame(number), 0);
        }
        for number in 0..1000 {
            assert_eq!(transit.deadline(), Some((u64::from(number) + 1) * 672));
            let now = transit.deadline().unwrap();
            assert_eq!(numbers(&arrivals(&mut transit, now)), [number]);
        }
        assert_eq!(transit.deadline(), None);
        // There is room again once one has left.
        transit.send(frame(2000), 672);
        assert_eq!(transit.deadline(), Some(1001 * 672));
    }

    #[test]
    fn a_held_frame_goes_once_it_is_overtaken_or_has_waited() {
        let reorders = Link {
            reorder: chance(1_000_000),
            ..Link::default()
        };
        let mut transit = transit(reorders);
        transit.send(frame(1), 0);
        assert_eq!(transit.arrive(HOLD - 1), None);
        assert_eq!(transit.deadline(), Some(HOLD));
        assert_eq!(numbers(&arrivals(&mut transit, HOLD)), [1]);

        transit.send(frame(2), 2 * HOLD);
        assert_eq!(transit.arrive(2 * HOLD), None);
        transit.held[0].overtakers = 2;
        transit.link.reorder = chance(0);
        let [fates, _] = transit.link.fates();
        transit.fates = fates;
        for number in [3, 4, 5] {
            transit.send(frame(number), 2 * HOLD + 1);
        }
        assert_eq!(numbers(&arrivals(&mut transit, 2 * HOLD + 1)), [3, 4, 2, 5]);
    }

    fn links() -> impl Strategy<Value = Link> {
        let rate = prop_oneof![Just(0u64), 10_000_000..10_000_000_000u64];
        let chances = [0..=300_000u32, 0..=300_000, 0..=300_000, 0..=300_000];
        (rate, 0..20_000u64, chances, any::<u64>()).prop_map(|(rate, delay, chances, seed)| {
            let [loss, reorder, duplicate, corrupt] = chances.map(chance);
            Link {
                rate: NonZeroU64::new(rate),
                delay: Duration::from_micros(delay),
                loss,
                reorder,
                duplicate,
                corrupt,
                seed,
            }
        })
    }

    proptest! {
        #[test]
        fn nothing_is_lost_without_loss(link in links()) {
            let link = Link { loss: chance(0), corrupt: chance(0), ..link };
            let mut numbers = numbers(&carry(link, 200));
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers, (0..200).collect::<Vec<_>>());
        }

        #[test]
        fn order_is_kept_without_reordering(link in links()) {
            let link = Link { reorder: chance(0), corrupt: chance(0), ..link };
            prop_assert!(numbers(&carry(link, 200)).is_sorted());
        }

        #[test]
        fn a_duplicate_is_exactly_the_frame(link in links()) {
            let link = Link { loss: chance(0), reorder: chance(0), duplicate: chance(1_000_000), ..link };
            let arrivals = carry(link, 200);
            prop_assert_eq!(arrivals.len(), 400);
            for (number, pair) in arrivals.chunks(2).enumerate() {
                prop_assert_eq!(&pair[1], &Arrival::whole(frame(number as u32)));
                prop_assert_eq!(pair[0].damaged, pair[0].frame != pair[1].frame);
            }
        }

        #[test]
        fn a_frame_falls_behind_three_others_at_most(link in links()) {
            let link = Link { duplicate: chance(0), corrupt: chance(0), ..link };
            let numbers = numbers(&carry(link, 200));
            for (at, number) in numbers.iter().enumerate() {
                let overtakers = numbers[..at].iter().filter(|other| *other > number).count();
                prop_assert!(overtakers <= 3, "{} in {:?}", number, numbers);
            }
        }

        #[test]
        fn who_looks_late_sees_the_same(link in links(), step in 1..1_000u64) {
            let mut transit = transit(link);
            let mut seen = Vec::new();
            for number in 0..200 {
                let now = u64::from(number) * 10_000;
                transit.send(frame(number), now);
                if u64::from(number) % step == 0 {
                    seen.extend(arrivals(&mut transit, now));
                }
            }
            while let Some(deadline) = transit.deadline() {
                seen.extend(arrivals(&mut transit, deadline));
            }
            prop_assert_eq!(seen, carry(link, 200));
        }
    }
}
