// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Ring arithmetic against a model that counts without wrapping.

use i82576::limits::{RING_MAX, RING_MIN};
use i82576::ring::Ring;
use proptest::prelude::*;

fn ring() -> impl Strategy<Value = Ring> {
    (RING_MIN / 8..=RING_MAX / 8).prop_map(|eighths| {
        Ring::new(eighths * 8).expect("a multiple of 8 within the bounds is a ring")
    })
}

/// A ring and an index into it.
fn ring_and_index() -> impl Strategy<Value = (Ring, u16)> {
    ring().prop_flat_map(|ring| (Just(ring), 0..ring.len()))
}

#[test]
fn a_ring_is_a_multiple_of_8_within_the_bounds() {
    for len in 0..=u16::MAX {
        let valid = len % 8 == 0 && (64..=4096).contains(&len);
        match Ring::new(len) {
            Some(ring) => {
                assert!(valid, "{len} is not a ring");
                assert_eq!(ring.len(), len);
                assert_eq!(ring.bytes(), u32::from(len) * 16);
                assert_eq!(ring.bytes() % 128, 0, "RDLEN is in units of 128 bytes");
            }
            None => assert!(!valid, "{len} is a ring"),
        }
    }
}

#[test]
fn a_ring_visits_every_slot_before_it_wraps() {
    let ring = Ring::new(64).expect("64 is a ring");
    let mut i = 0;
    for expected in (1..64).chain([0]) {
        i = ring.next(i);
        assert_eq!(i, expected);
    }
}

#[test]
fn an_empty_ring_has_all_slots_but_one_unused() {
    let ring = Ring::new(256).expect("256 is a ring");
    for i in 0..256 {
        assert_eq!((ring.used(i, i), ring.unused(i, i)), (0, 255), "at {i}");
    }
}

/// All pairs of indices of the smallest and the largest ring, and of one between that is no power of two.
#[test]
fn every_pair_of_indices_splits_the_ring_into_used_and_unused_slots() {
    for len in [RING_MIN, 1000, RING_MAX] {
        let ring = Ring::new(len).expect("a multiple of 8 within the bounds is a ring");
        for clean in 0..len {
            // Stepped, not computed.
            let mut fill = clean;
            for used in 0..len {
                assert_eq!(ring.used(fill, clean), used, "{clean}..{fill} of {len}");
                assert_eq!(ring.unused(fill, clean), len - 1 - used);
                assert!(clean + ring.contiguous(clean, used) <= len);
                fill = if fill + 1 == len { 0 } else { fill + 1 };
            }
        }
    }
}

proptest! {
    #[test]
    fn advancing_is_stepping_many_times((ring, start) in ring_and_index(), n in 0u16..9000) {
        let stepped = (0..n).fold(start, |i, _| ring.next(i));
        prop_assert_eq!(ring.advance(start, n), stepped);
        prop_assert!(stepped < ring.len());
    }

    #[test]
    fn an_index_never_leaves_the_ring(ring in ring(), i: u16, n: u16, other: u16) {
        prop_assert!(ring.next(i) < ring.len());
        prop_assert!(ring.advance(i, n) < ring.len());
        prop_assert!(ring.unused(i, other) < ring.len());
    }

    #[test]
    fn contiguous_slots_and_those_from_the_start_on_are_all_that_were_asked_for(
        (ring, start) in ring_and_index(),
        n: prop::sample::Index,
    ) {
        let n = n.index(ring.len().into()) as u16;
        let first = ring.contiguous(start, n);
        prop_assert!(start + first <= ring.len());
        let next = ring.after(start, first);
        prop_assert_eq!(next, ring.advance(start, first));
        prop_assert_eq!(first + ring.contiguous(next, n - first), n);
    }

    #[test]
    fn slots_are_used_or_unused_but_for_the_one_that_stays_empty(
        (ring, clean) in ring_and_index(),
        n: prop::sample::Index,
    ) {
        let used = n.index(ring.len().into()) as u16;
        let fill = ring.advance(clean, used);
        prop_assert_eq!(ring.used(fill, clean), used);
        prop_assert_eq!(ring.unused(fill, clean), ring.len() - 1 - used);
    }

    /// Fills and cleans at random, as a driver does, beside two counters that never wrap.
    #[test]
    fn filling_and_cleaning_agrees_with_unbounded_counters(
        (ring, start) in ring_and_index(),
        steps in prop::collection::vec((any::<bool>(), any::<u16>()), 0..200),
    ) {
        let len = u64::from(ring.len());
        let (mut fill, mut clean) = (start, start);
        let (mut filled, mut cleaned) = (u64::from(start), u64::from(start));
        for (fills, amount) in steps {
            if fills {
                let n = amount % (ring.unused(fill, clean) + 1);
                fill = ring.advance(fill, n);
                filled += u64::from(n);
            } else {
                let n = amount % (ring.used(fill, clean) + 1);
                clean = ring.advance(clean, n);
                cleaned += u64::from(n);
            }
            prop_assert_eq!(u64::from(fill), filled % len);
            prop_assert_eq!(u64::from(clean), cleaned % len);
            prop_assert_eq!(u64::from(ring.used(fill, clean)), filled - cleaned);
            prop_assert_eq!(u64::from(ring.unused(fill, clean)), len - 1 - (filled - cleaned));
            // Never full: head equal to tail is an empty ring to the device.
            prop_assert!(filled - cleaned < len);
        }
    }
}
