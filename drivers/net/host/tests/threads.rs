// SPDX-License-Identifier: GPL-2.0

//! Both sides at once, in every order that the memory model of C11 allows: loom tries them all.
//!
//! loom sees accesses of its own cells only. So each slot has one beside it, which is accessed when the slot is.

#![allow(
    unreachable_pub,
    reason = "the source is public where the kernel has it"
)]

// What is tried calls the kernel by its name.
extern crate self as kernel;

/// What the shim is made of.
mod primitives {
    pub(crate) use loom::sync::{
        atomic::{AtomicU32, Ordering},
        Arc,
    };
}

#[path = "../shim.rs"]
mod shim;

pub(crate) use shim::{prelude, sync};

#[expect(dead_code, reason = "not all of it is tried here")]
#[path = "../../spsc.rs"]
mod spsc;

use std::sync::atomic::{AtomicU32 as Count, Ordering::Relaxed};
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use spsc::{Consumer, Producer};

/// A value that is written by one side and read by the other.
struct Value {
    number: UnsafeCell<u32>,
    alive: Arc<Count>,
}

impl Drop for Value {
    fn drop(&mut self) {
        assert_ne!(self.alive.fetch_sub(1, Relaxed), 0, "dropped twice");
    }
}

/// The memory of the slots.
type Slots = loom::sync::Arc<Vec<UnsafeCell<()>>>;

struct Side<T> {
    queue: T,
    slots: Slots,
}

impl Side<Producer<Value>> {
    /// Pushes a value if there is room.
    fn push(&mut self, number: u32, alive: &Arc<Count>) -> bool {
        let index = self.queue.next_index() as usize;
        let Some(vacant) = self.queue.vacant() else {
            return false;
        };
        self.slots[index].with_mut(|_| ());
        alive.fetch_add(1, Relaxed);
        let value = Value {
            number: UnsafeCell::new(0),
            alive: alive.clone(),
        };
        // SAFETY: Nobody else has it yet.
        value.number.with_mut(|place| unsafe { *place = number });
        vacant.push(value);
        true
    }
}

impl Side<Consumer<Value>> {
    fn pop(&mut self) -> Option<u32> {
        let (index, _) = self.queue.peek()?;
        self.slots[index as usize].with_mut(|_| ());
        let value = self.queue.pop()?;
        // SAFETY: loom checks that nothing writes to it meanwhile.
        Some(value.number.with(|place| unsafe { *place }))
    }
}

fn queue(len: u32) -> (Side<Producer<Value>>, Side<Consumer<Value>>) {
    let (producer, consumer) = spsc::new(len).unwrap();
    let slots: Slots = loom::sync::Arc::new((0..len).map(|_| UnsafeCell::new(())).collect());
    let producer = Side {
        queue: producer,
        slots: slots.clone(),
    };
    let consumer = Side {
        queue: consumer,
        slots,
    };
    (producer, consumer)
}

/// Tries all orders, of which there are so many: fewer would say that some are not tried any more.
fn model(expected: u32, threads: impl Fn() + Send + Sync + 'static) {
    let orders = Arc::new(Count::new(0));
    let count = orders.clone();
    loom::model(move || {
        count.fetch_add(1, Relaxed);
        threads();
    });
    assert_eq!(orders.load(Relaxed), expected, "orders");
}

#[test]
fn values_arrive_whole_and_in_order_and_slots_are_used_again() {
    for (len, orders) in [(2, 10244), (3, 15647)] {
        model(orders, move || {
            let alive = Arc::new(Count::new(0));
            let (mut producer, mut consumer) = queue(len);
            let receiver = thread::spawn(move || {
                let mut last = 0;
                for _ in 0..2 {
                    while let Some(number) = consumer.pop() {
                        assert!(number > last, "{number} after {last}");
                        last = number;
                    }
                    consumer.queue.release();
                }
            });
            for number in 1..=3 {
                if producer.push(number, &alive) {
                    producer.queue.publish();
                }
            }
            drop(producer);
            receiver.join().unwrap();
            assert_eq!(alive.load(Relaxed), 0, "a value is lost");
        });
    }
}

#[test]
fn what_is_taken_back_never_arrives() {
    model(66, || {
        let alive = Arc::new(Count::new(0));
        let (mut producer, mut consumer) = queue(3);
        let receiver = thread::spawn(move || {
            let numbers: Vec<_> = std::iter::from_fn(|| consumer.pop()).collect();
            assert!(numbers.is_empty() || numbers == [3], "{numbers:?}");
        });
        assert!(producer.push(1, &alive) && producer.push(2, &alive));
        drop((producer.queue.unpush(), producer.queue.unpush()));
        assert!(producer.push(3, &alive));
        producer.queue.publish();
        assert!(
            producer.push(4, &alive),
            "the receiver has nothing to say in it"
        );
        drop(producer);
        receiver.join().unwrap();
        assert_eq!(alive.load(Relaxed), 0, "a value is lost");
    });
}

#[test]
fn others_never_see_more_free_slots_than_there_are() {
    model(37039, || {
        let alive = Arc::new(Count::new(0));
        let (mut producer, mut consumer) = queue(2);
        let observer = producer.queue.observer();
        let receiver = thread::spawn(move || {
            let _ = consumer.pop();
            consumer.queue.release();
        });
        let other = thread::spawn(move || assert!(observer.available() <= 1));
        for number in 1..=2 {
            if producer.push(number, &alive) {
                producer.queue.publish();
            }
        }
        receiver.join().unwrap();
        other.join().unwrap();
        drop(producer);
        assert_eq!(alive.load(Relaxed), 0, "a value is lost");
    });
}
