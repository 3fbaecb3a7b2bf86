// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Every state that a receive ring of a few descriptors, its buffers and a device can come to.
//!
//! The driver's side is [`Window`], used as `rigb` uses it (`rx/ring.rs`, `rx.rs`). Buffers may be short at
//! any time, and what was received either goes up or stays in its slot. The device finishes what it was
//! given in any order, which is more than the 82576 does. It may be stopped at any time.
//!
//! [`Ring::new`] takes no ring as small as these, and no other arithmetic than for larger ones is used.

extern crate std;

use std::{
    collections::{HashSet, VecDeque},
    vec::Vec, //
};

use super::{super::Ring, Window};

/// Descriptors of the largest ring.
const LARGEST: usize = 8;

/// Buffers: more than a ring takes, so that it can be full while the stack has one.
const BUFFERS: usize = LARGEST + 1;

/// Where a buffer is, but for those in slots.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum Place {
    Pool,
    Stack,
    Slot,
}

/// A descriptor, as the device sees it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum Descriptor {
    /// It is the driver's. What the device wrote there last may still say that it is done.
    Stale,
    /// It says that this buffer may be filled, and the device does not know yet.
    Written(u8),
    /// The device may fill this buffer.
    Given(u8),
    /// The device is done with it.
    Done,
}

impl Descriptor {
    /// Whether DD may be set.
    fn may_be_done(self) -> bool {
        matches!(self, Self::Done | Self::Stale)
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    next_to_use: u16,
    next_to_clean: u16,
    len: u16,
    slots: [Option<u8>; LARGEST],
    descriptors: [Descriptor; LARGEST],
    /// RDT, as last written.
    tail: u16,
    places: [Place; BUFFERS],
}

impl State {
    fn new(len: u16) -> Self {
        let mut places = [Place::Pool; BUFFERS];

        // One more than there are descriptors.
        places[usize::from(len) + 1..].fill(Place::Stack);
        Self {
            next_to_use: 0,
            next_to_clean: 0,
            len,
            slots: [None; LARGEST],
            descriptors: [Descriptor::Stale; LARGEST],
            tail: 0,
            places,
        }
    }

    fn window(&self) -> Window {
        Window {
            ring: Ring { len: self.len },
            next_to_use: self.next_to_use,
            next_to_clean: self.next_to_clean,
        }
    }

    fn set_window(&mut self, window: Window) {
        self.next_to_use = window.tail();
        self.next_to_clean = window.oldest();
    }

    /// The buffers that take part.
    fn buffers(&self) -> u8 {
        self.len as u8 + 1
    }

    fn slots(&self) -> core::ops::Range<usize> {
        0..usize::from(self.len)
    }

    /// Takes a buffer from one place to another.
    fn moves(&mut self, buffer: u8, from: Place, to: Place) {
        let place = &mut self.places[usize::from(buffer)];

        assert_eq!(*place, from, "buffer {buffer} has two owners");
        *place = to;
    }

    fn any_of(&self, place: Place) -> Option<u8> {
        (0..self.buffers()).find(|&buffer| self.places[usize::from(buffer)] == place)
    }

    /// Posts all that can be, but memory is short after `most` allocations.
    fn fill(&mut self, mut most: usize) {
        let mut window = self.window();
        let wanted = window.unposted();
        let mut filled = 0;

        'ring: while filled < wanted {
            let run = window.to_post(wanted - filled);

            assert_ne!(
                run.count, 0,
                "nothing can be posted where something is wanted"
            );
            assert!(run.range().end <= usize::from(self.len), "past the end");
            for index in run.range() {
                if self.slots[index].is_none() {
                    let Some(buffer) = self.any_of(Place::Pool).filter(|_| most != 0) else {
                        break 'ring;
                    };
                    most -= 1;
                    self.moves(buffer, Place::Pool, Place::Slot);
                    self.slots[index] = Some(buffer);
                }
                let buffer = self.slots[index].expect("filled above");
                assert_eq!(
                    self.descriptors[index],
                    Descriptor::Stale,
                    "descriptor {index} is written while it is the device's"
                );
                self.descriptors[index] = Descriptor::Written(buffer);
                filled += 1;
                window.post(1);
            }
        }
        self.set_window(window);
    }

    /// Tells the device the tail, from which it counts by itself which descriptors it has got.
    fn ring_doorbell(&mut self) {
        let tail = self.window().tail();

        while self.tail != tail {
            let descriptor = &mut self.descriptors[usize::from(self.tail)];
            let Descriptor::Written(buffer) = *descriptor else {
                panic!("the device got a descriptor that is {descriptor:?}");
            };
            *descriptor = Descriptor::Given(buffer);
            self.tail = (self.tail + 1) % self.len;
        }
    }

    /// Takes up to `most` that are done. Of the n-th, the buffer goes up if bit n of `up` is set.
    fn clean(&mut self, most: u16, up: u32) {
        let mut window = self.window();
        let run = window.to_clean(most);
        let done = run
            .range()
            .take_while(|&index| self.descriptors[index].may_be_done())
            .count();
        for (nth, index) in run.range().take(done).enumerate() {
            self.descriptors[index] = Descriptor::Stale;
            if up >> nth & 1 != 0 {
                let buffer = self.slots[index]
                    .take()
                    .expect("a posted slot has a buffer");

                self.moves(buffer, Place::Slot, Place::Stack);
            }
        }
        window.clean(done as u16);
        self.set_window(window);
    }

    /// The device has stopped, and the ring starts over.
    fn restart(&mut self) {
        let mut window = self.window();

        window.rewind();
        self.set_window(window);
        self.descriptors = [Descriptor::Stale; LARGEST];
        self.tail = 0;
    }

    /// The device has stopped, and the ring is freed.
    fn free(mut self) {
        for slot in self.slots() {
            if let Some(buffer) = self.slots[slot].take() {
                self.moves(buffer, Place::Slot, Place::Pool);
            }
        }
        assert_eq!(
            self.any_of(Place::Slot),
            None,
            "a buffer is lost: it is in no slot, nor anywhere else"
        );
    }

    /// What must hold in every state.
    fn check(&self) {
        let window = self.window();

        assert!(window.tail() < self.len && window.oldest() < self.len);
        assert_eq!(window.posted() + window.unposted(), self.len - 1);
        for most in (0..=self.len).chain([u16::MAX]) {
            for (run, there) in [
                (window.to_post(most), window.unposted()),
                (window.to_clean(most), window.posted()),
            ] {
                assert!(run.range().end <= usize::from(self.len), "past the end");
                assert!(run.count <= most.min(there), "{run:?} of {there}");
                assert!(run.count != 0 || most == 0 || there == 0, "no progress");
            }
        }
        let mut found = 0;
        for index in self.slots() {
            // Counted without the ring's arithmetic.
            let ahead = (index as u16 + self.len - window.oldest()) % self.len;
            let is_posted = ahead < window.posted();
            let slot = self.slots[index];

            if let Some(buffer) = slot {
                assert_eq!(found >> buffer & 1, 0, "buffer {buffer} is in two slots");
                found |= 1 << buffer;
                assert_eq!(
                    self.places[usize::from(buffer)],
                    Place::Slot,
                    "the buffer of slot {index} has another owner"
                );
            }
            match self.descriptors[index] {
                Descriptor::Stale => assert!(!is_posted, "{index} is posted, but not written"),
                Descriptor::Written(buffer) | Descriptor::Given(buffer) => {
                    assert!(is_posted, "{index} is the device's, but not posted");
                    assert_eq!(slot, Some(buffer), "the device has another buffer");
                }
                Descriptor::Done => {
                    assert!(
                        is_posted && slot.is_some(),
                        "{index} is done, but not posted"
                    );
                }
            }
        }
    }

    /// The same, with buffers numbered in the order of their slots: which of them is where makes no
    /// difference.
    fn renumbered(mut self) -> Self {
        let mut number = [u8::MAX; BUFFERS];
        let in_slots = self.slots.iter().flatten().copied();
        let of = |place| (0..self.buffers()).filter(move |&b| self.places[usize::from(b)] == place);
        let order: Vec<_> = in_slots
            .chain(of(Place::Pool))
            .chain(of(Place::Stack))
            .collect();
        let before = self.places;

        for (new, &old) in (0..).zip(&order) {
            number[usize::from(old)] = new;
            self.places[usize::from(new)] = before[usize::from(old)];
        }
        let renumber = |buffer: &mut u8| *buffer = number[usize::from(*buffer)];
        self.slots.iter_mut().flatten().for_each(renumber);
        for descriptor in &mut self.descriptors {
            if let Descriptor::Written(buffer) | Descriptor::Given(buffer) = descriptor {
                renumber(buffer);
            }
        }
        self
    }

    /// All states that can come next.
    fn successors(&self, mut reach: impl FnMut(State)) {
        let mut next = |act: &dyn Fn(&mut State)| {
            let mut state = *self;

            act(&mut state);
            state.check();
            reach(state.renumbered());
        };

        for most in 0..=usize::from(self.buffers()) {
            next(&|state| state.fill(most));
        }
        next(&State::ring_doorbell);
        for index in self.slots() {
            if let Descriptor::Given(_) = self.descriptors[index] {
                next(&|state| state.descriptors[index] = Descriptor::Done);
            }
        }
        let is_done = |ahead: &u16| {
            let index = (self.next_to_clean + ahead) % self.len;
            self.descriptors[usize::from(index)] == Descriptor::Done
        };
        let done = (0..self.len).take_while(is_done).count() as u16;
        for most in 1..=self.len {
            for up in 0..1 << done.min(most) {
                next(&|state| state.clean(most, up));
            }
        }
        if let Some(buffer) = self.any_of(Place::Stack) {
            next(&|state| state.moves(buffer, Place::Stack, Place::Pool));
        }
        next(&State::restart);
        self.free();
    }
}

/// Returns how many states there are.
fn explore(len: u16) -> usize {
    let mut seen = HashSet::new();
    let mut queue = VecDeque::new();

    queue.push_back(State::new(len));
    while let Some(state) = queue.pop_front() {
        state.successors(|next| {
            if seen.insert(next) {
                queue.push_back(next);
            }
        });
    }
    seen.len()
}

/// How many states rings of two descriptors and more have. Fewer would say that a step is not tried any more.
const STATES: [usize; LARGEST - 1] = [54, 297, 1228, 4335, 13842, 41237, 116760];

#[test]
fn every_buffer_of_a_small_ring_has_one_owner_in_every_state() {
    for (len, expected) in (2..).zip(STATES) {
        assert_eq!(explore(len), expected, "states of {len} descriptors");
    }
}
