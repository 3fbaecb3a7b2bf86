// SPDX-License-Identifier: MIT OR Apache-2.0

//! MSI-X interrupts: the eventfds that QEMU waits on.
//!
//! Masks are QEMU's: it has the table and the function's mask, and keeps an interrupt pending while its
//! vector is masked. Reads of the pending bits it passes on: they show what waits here, and not what waits there.
//!
//! A vector without an event is what it has not set up yet: one that was never
//! unmasked, or any of them for a moment, because QEMU takes all events back when MSI-X is enabled and when
//! it sets up another vector. What is due then is remembered, as silicon does with a pending bit, and sent
//! as soon as there is an event: a lost interrupt stops a driver. It is forgotten when MSI-X is disabled.

use std::{fs::File, io::Write};

use tracing::warn;

#[derive(Debug, Default)]
struct Vector {
    event: Option<File>,
    pending: bool,
}

/// All vectors of a device.
#[derive(Debug)]
pub struct Interrupts(Box<[Vector]>);

impl Interrupts {
    /// So many vectors.
    #[must_use]
    pub fn new(vectors: u16) -> Self {
        Self((0..vectors).map(|_| Vector::default()).collect())
    }

    /// Sends an interrupt, or remembers it. One of a vector that there is not is none.
    pub fn send(&mut self, vector: u16) {
        match self.0.get_mut(usize::from(vector)) {
            Some(vector) => vector.send(),
            None => warn!(vector, "there is no such vector"),
        }
    }

    /// Takes events for vectors from `start` on, and sends what has been waiting for them.
    pub fn set_events(&mut self, start: u32, events: Vec<File>) {
        for (vector, event) in self.from(start).iter_mut().zip(events) {
            vector.event = Some(event);
            if std::mem::take(&mut vector.pending) {
                vector.send();
            }
        }
    }

    /// Lets go of the events of `count` vectors from `start` on.
    pub fn take_events(&mut self, start: u32, count: u32) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        for vector in self.from(start).iter_mut().take(count) {
            vector.event = None;
        }
    }

    /// Sends interrupts of `count` vectors from `start` on, because QEMU wants to see them.
    pub fn send_all(&mut self, start: u32, count: u32) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        for vector in self.from(start).iter_mut().take(count) {
            vector.send();
        }
    }

    /// What waits, a bit for each vector.
    #[must_use]
    pub fn pending(&self) -> u64 {
        let bits = self.0.iter().zip(0..);
        bits.fold(0, |all, (vector, bit)| {
            all | u64::from(vector.pending) << bit
        })
    }

    /// Forgets what waits.
    pub fn forget(&mut self) {
        for vector in &mut self.0 {
            vector.pending = false;
        }
    }

    fn from(&mut self, start: u32) -> &mut [Vector] {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        self.0.get_mut(start..).unwrap_or_default()
    }
}

impl Vector {
    fn send(&mut self) {
        let Some(event) = &mut self.event else {
            self.pending = true;
            return;
        };
        if let Err(error) = event.write_all(&1u64.to_ne_bytes()) {
            warn!(%error, "an interrupt is lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    /// An event, twice: to give away and to look at.
    fn event() -> (File, File) {
        let file = File::from(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        (file.try_clone().unwrap(), file)
    }

    /// How often it has been signalled.
    fn count(mut event: &File) -> u64 {
        let mut bytes = [0; 8];
        event
            .read(&mut bytes)
            .map_or(0, |_| u64::from_ne_bytes(bytes))
    }

    #[test]
    fn an_interrupt_signals_the_event_of_its_vector() {
        let mut interrupts = Interrupts::new(10);
        let ((first, see_first), (second, see_second)) = (event(), event());
        interrupts.set_events(3, vec![first, second]);
        interrupts.send(4);
        interrupts.send(4);
        assert_eq!((count(&see_first), count(&see_second)), (0, 2));
    }

    #[test]
    fn what_comes_while_there_is_no_event_is_sent_once_when_there_is_one() {
        let mut interrupts = Interrupts::new(10);
        let (given, seen) = event();
        interrupts.send(0);
        interrupts.send(0);
        interrupts.send(9);
        assert_eq!(interrupts.pending(), 1 << 9 | 1);
        interrupts.set_events(0, vec![given]);
        assert_eq!(count(&seen), 1);
        assert_eq!(interrupts.pending(), 1 << 9);
        interrupts.take_events(0, 1);
        interrupts.send(0);
        assert_eq!(count(&seen), 0);
        let (given, seen) = event();
        interrupts.set_events(0, vec![given]);
        assert_eq!(count(&seen), 1);
    }

    #[test]
    fn what_was_forgotten_is_not_sent() {
        let mut interrupts = Interrupts::new(10);
        let (given, seen) = event();
        interrupts.send(0);
        interrupts.forget();
        interrupts.set_events(0, vec![given]);
        assert_eq!(count(&seen), 0);
    }

    #[test]
    fn vectors_that_there_are_not_are_harmless() {
        let mut interrupts = Interrupts::new(10);
        interrupts.send(u16::MAX);
        interrupts.take_events(u32::MAX, u32::MAX);
        interrupts.send_all(9, u32::MAX);
        let (given, seen) = event();
        interrupts.set_events(9, vec![given, event().0]);
        assert_eq!(count(&seen), 1);
    }
}
