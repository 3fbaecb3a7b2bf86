// SPDX-License-Identifier: MIT OR Apache-2.0

//! An engine, and memory that it reaches.

mod any_bytes;
mod misled;
mod operations;
mod queues;
mod rounding;

use engine::{
    descriptor::{COMPLETION, Completion, Descriptor, SIZE},
    fragment::Fragment,
    regs::{self, Register},
};

use super::{Engine, What};
use crate::{Fault, Host};

/// Where memory begins, and its bytes.
const BASE: u64 = 0x1_0000_0000;
const MEMORY: usize = 0x10_0000;

/// What an engine did.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Read(u64, usize),
    Write(u64, Vec<u8>),
    Interrupt(u16),
}

#[derive(Debug)]
struct Memory {
    bytes: Vec<u8>,
    events: Vec<Event>,
}

impl Memory {
    fn at(&mut self, address: u64, len: usize) -> Result<&mut [u8], Fault> {
        let start = address.checked_sub(BASE).ok_or(Fault::Unanswered)? as usize;
        let end = start.checked_add(len).ok_or(Fault::Unanswered)?;
        self.bytes.get_mut(start..end).ok_or(Fault::Unanswered)
    }
}

impl Host for Memory {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.events.push(Event::Read(address, bytes.len()));
        bytes.copy_from_slice(self.at(address, bytes.len())?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.events.push(Event::Write(address, bytes.to_vec()));
        self.at(address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn interrupt(&mut self, vector: u16) {
        self.events.push(Event::Interrupt(vector));
    }

    fn send(&mut self, _: Vec<u8>) {
        panic!("an engine is on no wire");
    }
}

/// An engine whose queues each have a ring of four descriptors at [`RING`] of their window 0, which is all
/// memory that they have.
#[derive(Debug)]
struct Bench {
    engine: Engine,
    memory: Memory,
    now: u64,
    tails: [u32; regs::QUEUES as usize],
}

/// Where in window 0 what is.
const RING: u64 = 0;
const LIST: u64 = 0x400;
/// Descriptors of the ring, as a binary logarithm.
const RING_SIZE: u32 = 2;
/// Bytes of a queue's window 0.
const SHARE: u64 = MEMORY as u64 / regs::QUEUES as u64;

impl Bench {
    fn new() -> Self {
        let mut this = Self {
            engine: Engine::default(),
            memory: Memory {
                bytes: vec![0; MEMORY],
                events: Vec::new(),
            },
            now: 0,
            tails: [0; regs::QUEUES as usize],
        };
        for queue in 0..regs::QUEUES {
            this.open(queue, 0, share(queue), SHARE);
            this.set(queue, regs::RING_SIZE, RING_SIZE);
            this.set(queue, regs::CONTROL, regs::CONTROL_ENABLE);
        }
        this
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.engine.write(offset, value, &mut self.memory);
    }

    fn set(&mut self, queue: u32, register: u32, value: u32) {
        self.write(regs::queue(queue) + register, value);
    }

    fn get(&mut self, queue: u32, register: u32) -> u32 {
        self.engine.read(regs::queue(queue) + register)
    }

    fn status(&mut self, queue: u32) -> u32 {
        self.get(queue, regs::STATUS)
    }

    fn head(&mut self, queue: u32) -> u32 {
        self.engine.read(regs::portal(queue) + regs::HEAD)
    }

    fn open(&mut self, queue: u32, window: u32, base: u64, size: u64) {
        for (register, value) in [
            (regs::WINDOW_BASE_LOW, base as u32),
            (regs::WINDOW_BASE_HIGH, (base >> 32) as u32),
            (regs::WINDOW_SIZE_HIGH, (size >> 32) as u32),
            (regs::WINDOW_SIZE_LOW, size as u32),
        ] {
            self.write(regs::window(queue, window) + register, value);
        }
    }

    /// What is at an offset of a queue's window 0.
    fn bytes(&mut self, queue: u32, offset: u64, len: usize) -> &mut [u8] {
        self.memory.at(share(queue) + offset, len).unwrap()
    }

    /// Puts fragments into the list, and a descriptor of them into the ring.
    fn put(&mut self, queue: u32, descriptor: &Descriptor, fragments: &[Fragment]) {
        let list: Vec<u8> = fragments.iter().flat_map(|one| one.encode()).collect();
        self.bytes(queue, LIST, list.len()).copy_from_slice(&list);
        let descriptor = Descriptor {
            fragments: fragments.len() as u32,
            list: LIST,
            ..*descriptor
        };
        let tail = &mut self.tails[queue as usize];
        let at = u64::from(*tail % (1 << RING_SIZE)) * SIZE as u64;
        *tail += 1;
        self.bytes(queue, RING + at, SIZE)
            .copy_from_slice(&descriptor.encode());
    }

    fn ring(&mut self, queue: u32) {
        let tail = self.tails[queue as usize];
        self.write(regs::portal(queue) + regs::TAIL, tail);
    }

    /// Lets a moment pass, and returns the deadline.
    fn elapse(&mut self) -> Option<u64> {
        self.now += 1;
        self.engine.elapse(self.now, &mut self.memory)
    }

    /// Lets time pass until there is nothing more to do.
    fn run(&mut self) {
        while let Some(time) = self.elapse() {
            self.now = self.now.max(time);
        }
    }

    /// What became of the descriptor that was put last.
    fn completion(&mut self, queue: u32) -> Option<Completion> {
        let index = (self.tails[queue as usize] - 1) % (1 << RING_SIZE);
        self.completion_at(queue, index)
    }

    /// What a descriptor of the ring says.
    fn completion_at(&mut self, queue: u32, index: u32) -> Option<Completion> {
        let at = u64::from(index) * SIZE as u64 + COMPLETION as u64;
        Completion::decode(self.bytes(queue, RING + at, 16).try_into().unwrap())
    }

    /// Executes a descriptor of queue 0.
    fn execute(&mut self, descriptor: &Descriptor, fragments: &[Fragment]) -> Option<Completion> {
        self.put(0, descriptor, fragments);
        self.ring(0);
        self.run();
        self.completion(0)
    }

    fn violations(&mut self) -> Vec<(What, usize)> {
        let all = self.engine.violations().into_iter();
        all.map(|violation| (violation.what, violation.queue))
            .collect()
    }
}

fn share(queue: u32) -> u64 {
    BASE + u64::from(queue) * SHARE
}

#[test]
fn it_says_what_it_is() {
    let mut engine = Engine::default();
    assert_eq!(engine.read(regs::ID), regs::ID_VALUE);
    assert_eq!(engine.read(regs::CAPABILITIES), regs::CAPABILITIES_VALUE);
}

#[test]
fn what_is_written_is_read_and_elsewhere_there_are_zeros() {
    let mut bench = Bench::new();
    for offset in (0..regs::BAR_SIZE as u32 + 8).step_by(4) {
        let readable = match Register::at(offset) {
            Some(Register::Queue { register, .. }) => matches!(register, 0x08..=0x14 | 0x20..=0x28),
            Some(Register::Window { .. }) => true,
            _ => false,
        };
        let fixed = match Register::at(offset) {
            Some(Register::Device(register)) => register < regs::RESET,
            Some(Register::Queue { register, .. }) => register <= regs::STATUS,
            _ => false,
        };
        bench.write(offset, 0x1234_5678);
        let expected = if readable { 0x1234_5678 } else { 0 };
        if !fixed {
            assert_eq!(bench.engine.read(offset), expected, "{offset:#x}");
        }
    }
}
