// SPDX-License-Identifier: GPL-2.0

//! A bounded queue from one producer to one consumer, without locks.
//!
//! Carries what a transmit path (under the queue's lock) owes to a completion path (in NAPI). Slot
//! `i` of the queue is slot `i` of the descriptor ring beside it.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit, //
};

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};

/// # Invariants
///
/// - `slots` is not empty, `head` and `tail` are below its length.
/// - The slots from `head` up to `tail` belong to the consumer, all others to the producer. When
///   both are gone, those are initialised, and no others.
struct Shared<S> {
    /// The oldest slot that the consumer has not taken; written by the consumer.
    head: Atomic<u32>,
    /// The first slot that the producer has not published; written by the producer.
    tail: Atomic<u32>,
    slots: KVVec<UnsafeCell<MaybeUninit<S>>>,
}

// SAFETY: By the type invariant a slot belongs to one side at a time; it moves between them with
// release and acquire.
unsafe impl<S: Send> Sync for Shared<S> {}
// SAFETY: As above.
unsafe impl<S: Send> Send for Shared<S> {}

impl<S> Shared<S> {
    fn len(&self) -> u32 {
        // CAST: `new` takes the length as `u32`.
        self.slots.len() as u32
    }

    fn next(&self, index: u32) -> u32 {
        if index + 1 == self.len() {
            0
        } else {
            index + 1
        }
    }

    fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from {
            to - from
        } else {
            self.len() - from + to
        }
    }

    /// How many slots are free when those before `head` are, less what was not published.
    fn available(&self, head: u32) -> u32 {
        self.len() - 1 - self.distance(head, self.tail.load(Acquire))
    }

    fn slot(&self, index: u32) -> Option<*mut MaybeUninit<S>> {
        self.slots.get(index as usize).map(UnsafeCell::get)
    }
}

impl<S> Drop for Shared<S> {
    fn drop(&mut self) {
        let tail = self.tail.load(Relaxed);
        let mut head = self.head.load(Relaxed);

        while head != tail {
            if let Some(slot) = self.slot(head) {
                // SAFETY: Initialised by the type invariant; both sides are gone.
                unsafe { (*slot).assume_init_drop() };
            }
            head = self.next(head);
        }
    }
}

/// Makes a queue of `len` slots, of which `len - 1` can be in use.
///
/// # Errors
///
/// `EINVAL` if `len` is less than 2, `ENOMEM`.
pub fn new<S: Send>(len: u32) -> Result<(Producer<S>, Consumer<S>)> {
    if len < 2 {
        return Err(EINVAL);
    }

    let mut slots = KVVec::with_capacity(len as usize, GFP_KERNEL)?;

    for _ in 0..len {
        slots.push(UnsafeCell::new(MaybeUninit::uninit()), GFP_KERNEL)?;
    }

    // INVARIANT: Nothing is published yet: all slots belong to the producer.
    let shared = Arc::new(
        Shared {
            head: Atomic::new(0),
            tail: Atomic::new(0),
            slots,
        },
        GFP_KERNEL,
    )?;

    Ok((
        Producer {
            shared: shared.clone(),
            published: 0,
            next: 0,
            head: 0,
        },
        Consumer {
            shared,
            head: 0,
            tail: 0,
        },
    ))
}

/// The side that fills slots.
///
/// # Invariants
///
/// `published` is `shared.tail`. The slots from there up to `next` are initialised, those from
/// there up to `head` are free.
pub struct Producer<S> {
    shared: Arc<Shared<S>>,
    published: u32,
    next: u32,
    /// What `shared.head` was when it was last looked at.
    head: u32,
}

impl<S> Producer<S> {
    /// The slot that the next [`Vacant::push`] fills.
    #[inline]
    pub fn next_index(&self) -> u32 {
        self.next
    }

    /// How many slots are free.
    #[inline]
    pub fn available(&mut self) -> u32 {
        self.head = self.shared.head.load(Acquire);
        self.shared.len() - 1 - self.shared.distance(self.head, self.next)
    }

    /// Returns whether the consumer has released all that was pushed.
    pub fn is_empty(&mut self) -> bool {
        self.available() == self.shared.len() - 1
    }

    /// What looks at the queue from elsewhere.
    pub fn observer(&self) -> Observer<S> {
        Observer {
            shared: self.shared.clone(),
        }
    }

    /// The next slot, for a value that is made in its place; `None` if the queue is full.
    #[inline]
    pub fn vacant(&mut self) -> Option<Vacant<'_, S>> {
        let next = self.shared.next(self.next);

        if next == self.head && self.available() == 0 {
            return None;
        }
        let slot = self.shared.slot(self.next)?;

        // SAFETY: The slot is free, so it belongs to the producer, and `&mut self` makes this the
        // only access.
        let slot = unsafe { &mut *slot };
        Some(Vacant {
            slot,
            at: &mut self.next,
            next,
        })
    }

    /// The oldest of the slots that were pushed and not published.
    #[inline]
    pub fn oldest(&mut self) -> Option<&mut S> {
        if self.next == self.published {
            return None;
        }
        // SAFETY: Initialised by the type invariant, and not published, so it is the producer's.
        self.shared
            .slot(self.published)
            .map(|slot| unsafe { (*slot).assume_init_mut() })
    }

    /// The newest of the slots that were pushed and not published.
    #[inline]
    pub fn newest(&mut self) -> Option<&mut S> {
        if self.next == self.published {
            return None;
        }
        // SAFETY: As in `oldest`.
        self.shared
            .slot(self.before(self.next))
            .map(|slot| unsafe { (*slot).assume_init_mut() })
    }

    fn before(&self, index: u32) -> u32 {
        match index {
            0 => self.shared.len() - 1,
            index => index - 1,
        }
    }

    /// Takes back what was pushed and not published, newest first.
    #[inline]
    pub fn unpush(&mut self) -> Option<S> {
        if self.next == self.published {
            return None;
        }

        self.next = self.before(self.next);
        // SAFETY: Initialised by the type invariant, and not published.
        self.shared
            .slot(self.next)
            .map(|slot| unsafe { (*slot).assume_init_read() })
    }

    /// Gives all that was pushed to the consumer.
    #[inline]
    pub fn publish(&mut self) {
        self.shared.tail.store(self.next, Release);
        self.published = self.next;
    }
}

impl<S> Drop for Producer<S> {
    fn drop(&mut self) {
        while self.unpush().is_some() {}
    }
}

/// A slot that is free, of a [`Producer`].
///
/// # Invariants
///
/// `slot` is the producer's slot `at`, and `next` the one after it.
pub struct Vacant<'a, S> {
    slot: &'a mut MaybeUninit<S>,
    at: &'a mut u32,
    next: u32,
}

impl<S> Vacant<'_, S> {
    /// Fills it; the consumer sees it after [`Producer::publish`].
    #[inline]
    pub fn push(self, value: S) {
        self.slot.write(value);
        // INVARIANT: Initialised just above.
        *self.at = self.next;
    }
}

/// The side that takes slots.
///
/// # Invariants
///
/// The slots from `shared.head` up to `head` were taken, those from there up to `tail` are
/// initialised.
pub struct Consumer<S> {
    shared: Arc<Shared<S>>,
    head: u32,
    /// What `shared.tail` was when it was last looked at.
    tail: u32,
}

impl<S> Consumer<S> {
    /// The oldest slot and its index.
    #[inline]
    pub fn peek(&mut self) -> Option<(u32, &S)> {
        if self.head == self.tail {
            self.tail = self.shared.tail.load(Acquire);
            if self.head == self.tail {
                return None;
            }
        }
        // SAFETY: By the type invariant the slot is initialised and belongs to the consumer; it
        // stays so while `self` is borrowed.
        self.shared
            .slot(self.head)
            .map(|slot| (self.head, unsafe { (*slot).assume_init_ref() }))
    }

    /// Takes the oldest slot; the producer may use it again after [`Self::release`].
    #[inline]
    pub fn pop(&mut self) -> Option<S> {
        let (head, _) = self.peek()?;
        // SAFETY: `peek` found it initialised and the consumer's own, and it is taken once.
        let value = unsafe { (*self.shared.slot(head)?).assume_init_read() };

        self.head = self.shared.next(head);
        Some(value)
    }

    /// Releases all that was taken to the producer.
    #[inline]
    pub fn release(&mut self) {
        self.shared.head.store(self.head, Release);
    }

    /// How many slots are free for the producer once all that was taken is released, less what it
    /// has not published.
    #[inline]
    pub fn available(&self) -> u32 {
        self.shared.available(self.head)
    }
}

impl<S> Drop for Consumer<S> {
    fn drop(&mut self) {
        self.release();
    }
}

/// Looks at a queue that others use.
pub struct Observer<S> {
    shared: Arc<Shared<S>>,
}

impl<S> Clone for Observer<S> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<S> Observer<S> {
    /// How many slots are free for the producer, less what it has not published; at any time there
    /// may be more.
    #[inline]
    pub fn available(&self) -> u32 {
        self.shared.available(self.shared.head.load(Acquire))
    }
}
