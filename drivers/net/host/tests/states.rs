// SPDX-License-Identifier: GPL-2.0

//! Every state that a small queue can come to, one step at a time, beside counters that never wrap.

use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use net_host::spsc::{self, Consumer, Producer};

/// How many states queues of two slots and more have. Fewer would say that a step is not tried any more.
const STATES: [usize; 7] = [12, 63, 224, 630, 1512, 3234, 6336];

#[derive(Copy, Clone, Debug)]
enum Step {
    Push,
    Unpush,
    Publish,
    /// The producer looks how many are free.
    Look,
    Peek,
    Pop,
    Release,
}

const STEPS: [Step; 7] = [
    Step::Push,
    Step::Unpush,
    Step::Publish,
    Step::Look,
    Step::Peek,
    Step::Pop,
    Step::Release,
];

/// How many values there are, of those that were made in one run.
struct Value(u32, Arc<AtomicU32>);

impl Drop for Value {
    fn drop(&mut self) {
        let before = self.1.fetch_sub(1, Ordering::Relaxed);
        assert_ne!(before, 0, "{} is dropped twice", self.0);
    }
}

/// What the queue must be like: how often each has happened.
#[derive(Clone, Debug, Default)]
struct Counters {
    pushed: u32,
    published: u32,
    popped: u32,
    released: u32,
    /// `released` and `published` as the other side has seen them last.
    seen_released: u32,
    seen_published: u32,
}

impl Counters {
    /// What tells the state: places in the ring.
    fn places(&self, len: u32) -> [u32; 6] {
        let Self {
            pushed,
            published,
            popped,
            released,
            seen_released,
            seen_published,
        } = *self;
        let base = released - released % len;
        // Relative to the ring's start, as differences of up to its length count.
        [
            pushed - base,
            published - base,
            popped - base,
            released - base,
            released - seen_released,
            published - seen_published,
        ]
    }
}

struct Queue {
    len: u32,
    producer: Producer<Value>,
    consumer: Consumer<Value>,
    alive: Arc<AtomicU32>,
    counters: Counters,
    /// The number of the next value.
    next: Rc<Cell<u32>>,
    /// Numbers of the values that are in the queue.
    values: VecDeque<u32>,
}

impl Queue {
    fn new(len: u32) -> Self {
        let (producer, consumer) = spsc::new(len).unwrap();
        Self {
            len,
            producer,
            consumer,
            alive: Arc::default(),
            counters: Counters::default(),
            next: Rc::default(),
            values: VecDeque::new(),
        }
    }

    fn step(&mut self, step: Step) {
        let (len, c) = (self.len, &mut self.counters);
        match step {
            Step::Push => {
                assert_eq!(self.producer.next_index(), c.pushed % len);
                if c.pushed - c.seen_released == len - 1 {
                    c.seen_released = c.released;
                }
                let vacant = self.producer.vacant();
                assert_eq!(vacant.is_some(), c.pushed - c.released < len - 1);
                if let Some(vacant) = vacant {
                    let number = self.next.replace(self.next.get() + 1);
                    self.alive.fetch_add(1, Ordering::Relaxed);
                    vacant.push(Value(number, self.alive.clone()));
                    self.values.push_back(number);
                    c.pushed += 1;
                }
            }
            Step::Unpush => {
                let value = self.producer.unpush();
                assert_eq!(value.is_some(), c.pushed != c.published);
                if let Some(value) = value {
                    assert_eq!(Some(value.0), self.values.pop_back());
                    c.pushed -= 1;
                }
            }
            Step::Publish => {
                self.producer.publish();
                c.published = c.pushed;
            }
            Step::Look => {
                let free = len - 1 - (c.pushed - c.released);
                assert_eq!(self.producer.available(), free);
                c.seen_released = c.released;
            }
            Step::Peek | Step::Pop => {
                if c.popped == c.seen_published {
                    c.seen_published = c.published;
                }
                let is_there = c.popped != c.published;
                let expected = is_there.then(|| (c.popped % len, self.values[0]));
                let peeked = self.consumer.peek().map(|(index, value)| (index, value.0));
                assert_eq!(peeked, expected);
                if matches!(step, Step::Pop) {
                    let value = self.consumer.pop();
                    assert_eq!(value.is_some(), is_there);
                    if let Some(value) = value {
                        assert_eq!(Some(value.0), self.values.pop_front());
                        c.popped += 1;
                    }
                }
            }
            Step::Release => {
                self.consumer.release();
                c.released = c.popped;
            }
        }
        let unreleased = c.published - c.released;
        let observer = self.producer.observer();
        assert_eq!(observer.available(), len - 1 - unreleased);
        assert_eq!(
            self.consumer.available(),
            len - 1 - (c.published - c.popped)
        );
        // Unpublished values are the oldest and the newest of themselves.
        let own = c.pushed - c.published;
        let newest = self.producer.newest().map(|value| value.0);
        assert_eq!(newest, (own != 0).then(|| *self.values.back().unwrap()));
        let oldest = self.producer.oldest().map(|value| value.0);
        let at = self.values.len() - own as usize;
        assert_eq!(oldest, self.values.get(at).copied());
        let alive = self.alive.load(Ordering::Relaxed);
        assert_eq!(alive as usize, self.values.len(), "lost or doubled");
    }

    /// Both sides go, in either order.
    fn stop(self, producer_first: bool) {
        let Self {
            producer,
            consumer,
            alive,
            ..
        } = self;
        if producer_first {
            drop(producer);
            drop(consumer);
        } else {
            drop(consumer);
            drop(producer);
        }
        assert_eq!(alive.load(Ordering::Relaxed), 0, "a value is lost");
    }
}

/// The queue after these steps.
fn replay(len: u32, steps: &[Step]) -> Queue {
    let mut queue = Queue::new(len);
    steps.iter().for_each(|step| queue.step(*step));
    queue
}

/// Returns how many states there are.
fn explore(len: u32) -> usize {
    let mut seen = HashSet::from([Counters::default().places(len)]);
    let mut paths = VecDeque::from([Vec::new()]);
    while let Some(path) = paths.pop_front() {
        for producer_first in [true, false] {
            replay(len, &path).stop(producer_first);
        }
        for step in STEPS {
            let mut queue = replay(len, &path);
            queue.step(step);
            if seen.insert(queue.counters.places(len)) {
                let mut path = path.clone();
                path.push(step);
                paths.push_back(path);
            }
        }
    }
    seen.len()
}

#[test]
fn nothing_in_a_small_queue_is_lost_or_doubled_in_any_state() {
    for (len, expected) in (2..).zip(STATES) {
        assert_eq!(explore(len), expected, "states of {len} slots");
    }
}
