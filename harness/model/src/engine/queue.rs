// SPDX-License-Identifier: MIT OR Apache-2.0

//! A work queue: its ring, and the descriptor that is being executed.

use engine::{
    descriptor::{COMPLETION, COMPLETION_SIZE, SIZE, Status},
    regs::{
        CONTROL, CONTROL_ENABLE, MAX_RING_SIZE, RING_OFFSET_HIGH, RING_OFFSET_LOW, RING_SIZE,
        RING_WINDOW, SIGNAL_ARMED, SIGNAL_HIGH, SIGNAL_LOW, SIGNAL_SENT, SIGNAL_STATUS,
        SIGNAL_VALUE, STATUS, STATUS_BAD_RING, STATUS_RUNNING,
    },
};

use super::{
    What,
    task::{Buffers, Task},
    violation::Record,
    windows::{Memory, Windows, wide},
};
use crate::{
    Host,
    lies::{Kind, Lies},
};

/// Bytes that a queue works on in its turn, and once more as many at most.
const TURN: u64 = 64 * 1024;
/// What each step counts at least, in bytes: 1024 of them are a turn.
const STEP: u64 = 64;
/// Nanoseconds until a queue that was disabled has come to rest.
const REST: u64 = 20_000;
/// Registers of a queue.
const WORDS: usize = SIGNAL_VALUE as usize / 4 + 1;

/// What is around a queue.
pub(super) struct Surroundings<'a> {
    /// The queue's number.
    pub(super) number: usize,
    pub(super) host: &'a mut dyn Host,
    pub(super) record: &'a mut Record,
    pub(super) lies: &'a mut Lies,
}

impl Surroundings<'_> {
    fn interrupt(&mut self) {
        if !self.lies.tells(Kind::LostInterrupt) {
            // CAST: There are as many vectors as queues.
            self.host.interrupt(self.number as u16);
        }
    }

    /// An interrupt that says nothing, of any queue or of none.
    fn interrupt_by_the_way(&mut self) {
        if let Some(value) = self.lies.tell(Kind::SpuriousInterrupt) {
            self.host.interrupt(value as u16 % 16);
        }
    }

    pub(super) fn violated(&mut self, what: What) {
        self.record.violated(what, self.number);
    }
}

/// Where a ring is, and how many descriptors it has.
#[derive(Debug, Clone, Copy)]
struct Ring {
    window: u8,
    offset: u64,
    len: u32,
}

impl Ring {
    /// Where a descriptor is, by its count since the queue was enabled.
    fn at(self, count: u32) -> u64 {
        self.offset + u64::from(count % self.len) * SIZE as u64
    }
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Rests,
    Runs(Ring),
    /// It was disabled. It does nothing more, and rests from this time on.
    Stops(u64),
}

/// What has become of a signal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Signal {
    #[default]
    None,
    Armed,
    Sent,
}

/// A work queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    words: [u32; WORDS],
    pub(super) windows: Windows,
    state: State,
    task: Option<Task>,
    bad_ring: bool,
    signal: Signal,
    head: u32,
    tail: u32,
    /// A completion that comes after the next one.
    late: Option<(u32, [u8; COMPLETION_SIZE])>,
}

impl Queue {
    /// Reads one of the driver's registers.
    pub(super) fn read(&self, register: u32) -> u32 {
        match register {
            STATUS => flag(!self.rests(), STATUS_RUNNING) | flag(self.bad_ring, STATUS_BAD_RING),
            SIGNAL_STATUS => {
                flag(self.signal == Signal::Armed, SIGNAL_ARMED)
                    | flag(self.signal == Signal::Sent, SIGNAL_SENT)
            }
            _ => self.words.get(register as usize / 4).copied().unwrap_or(0),
        }
    }

    /// Writes one.
    pub(super) fn write(
        &mut self,
        register: u32,
        value: u32,
        now: u64,
        around: &mut Surroundings<'_>,
    ) {
        let was = self.read(register);
        match register {
            CONTROL => self.set(CONTROL, value & CONTROL_ENABLE),
            RING_WINDOW | RING_SIZE | RING_OFFSET_LOW | RING_OFFSET_HIGH | SIGNAL_LOW
            | SIGNAL_HIGH | SIGNAL_VALUE => self.set(register, value),
            _ => {}
        }
        match (register, was, self.get(CONTROL)) {
            (CONTROL, 0, CONTROL_ENABLE) => self.enable(around),
            (CONTROL, CONTROL_ENABLE, 0) => self.disable(now),
            (SIGNAL_VALUE, ..) => self.signal = Signal::Armed,
            (SIGNAL_STATUS, ..) => self.disarm(),
            _ => {}
        }
    }

    /// How many descriptors have been completed.
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    /// Takes descriptors up to this count.
    pub(super) fn set_tail(&mut self, tail: u32, around: &mut Surroundings<'_>) {
        if let State::Runs(ring) = self.state {
            self.tail = tail;
            if tail.wrapping_sub(self.head) > ring.len {
                self.fail(around);
            }
        }
    }

    /// Whether it reaches no memory.
    pub(super) fn rests(&self) -> bool {
        matches!(self.state, State::Rests)
    }

    /// Whether it is time to come to rest.
    pub(super) fn settles(&self, now: u64) -> bool {
        matches!(self.state, State::Stops(until) if until <= now)
    }

    /// Comes to rest, of which nothing else is told.
    pub(super) fn rest(&mut self) {
        self.state = State::Rests;
    }

    /// Never does.
    pub(super) fn hold(&mut self) {
        self.state = State::Stops(u64::MAX);
    }

    pub(super) fn has_work(&self) -> bool {
        matches!(self.state, State::Runs(_)) && self.head != self.tail
    }

    /// When there is something to do.
    pub(super) fn deadline(&self, now: u64) -> Option<u64> {
        match self.state {
            State::Stops(until) => Some(until).filter(|&until| until != u64::MAX),
            _ => self.has_work().then_some(now),
        }
    }

    /// Does a part of what there is to do.
    pub(super) fn work(&mut self, buffers: &mut Buffers, around: &mut Surroundings<'_>) {
        around.interrupt_by_the_way();
        if around.lies.tells(Kind::Hang) {
            self.tail = self.head;
            return;
        }
        let mut left = TURN;
        while left > 0 && self.has_work() {
            match self.step(buffers, around) {
                Ok(bytes) => left = left.saturating_sub(bytes.max(STEP)),
                Err(status) => {
                    if status == Status::Fault {
                        around.violated(What::Unreachable);
                    }
                    self.fail(around);
                }
            }
        }
    }

    /// Reads a descriptor, does a part of it, or completes it. Returns how many bytes were worked on, or
    /// what is wrong with the ring.
    fn step(
        &mut self,
        buffers: &mut Buffers,
        around: &mut Surroundings<'_>,
    ) -> Result<u64, Status> {
        let State::Runs(ring) = self.state else {
            return Ok(0);
        };
        let mut memory = Memory::new(&self.windows, around.host);
        let Some(task) = &mut self.task else {
            let mut bytes = [0; SIZE];
            memory.read(ring.window, ring.at(self.head), &mut bytes)?;
            let mut task = Task::new(&bytes);
            if around.lies.tells(Kind::NoData) {
                task.pretend();
            }
            if around.lies.tells(Kind::Premature) {
                let done = task.completion(Status::Done).encode();
                report(&mut memory, ring, self.head, &done)?;
                if task.interrupts() {
                    around.interrupt();
                }
            }
            self.task = Some(task);
            return Ok(0);
        };
        let before = task.bytes();
        let status = task.step(&mut memory, buffers);
        let bytes = task.bytes() - before;
        if let Some(status) = status {
            self.complete(ring, status, around)?;
        }
        Ok(bytes)
    }

    fn complete(
        &mut self,
        ring: Ring,
        status: Status,
        around: &mut Surroundings<'_>,
    ) -> Result<(), Status> {
        let Some(task) = self.task.take() else {
            return Ok(());
        };
        if status == Status::Fault {
            around.violated(What::Unreachable);
        }
        let mut completion = task.completion(status).encode();
        let (said, counts) = completion.split_at_mut(size_of::<u32>());
        if let Some(value) = around.lies.tell(Kind::Status) {
            said.copy_from_slice(&(value as u32).to_le_bytes());
        }
        if let Some(value) = around.lies.tell(Kind::Length) {
            counts.copy_from_slice(&value.to_le_bytes().repeat(2)[..counts.len()]);
        }
        let late = self.late.take();
        let mut to_report = Vec::new();
        if around.lies.tells(Kind::Late) {
            self.late = Some((self.head, completion));
        } else if !around.lies.tells(Kind::NoReport) {
            to_report.push((self.head, completion));
        }
        to_report.extend(late);
        if let Some(value) = around.lies.tell(Kind::Repeated) {
            // Of any descriptor of the ring, which its user may have posted again. CAST: Any number is of one.
            to_report.push((self.head.wrapping_sub(value as u32), completion));
        }
        let mut memory = Memory::new(&self.windows, around.host);
        for (number, completion) in to_report {
            report(&mut memory, ring, number, &completion)?;
        }
        self.head = self.head.wrapping_add(1);
        if task.signals() && matches!(status, Status::Done | Status::Different) {
            self.send_signal(around);
        }
        if task.interrupts() {
            around.interrupt();
        }
        Ok(())
    }

    /// Writes the signal, if it is armed.
    fn send_signal(&mut self, around: &mut Surroundings<'_>) {
        if self.signal != Signal::Armed {
            return;
        }
        self.signal = Signal::Sent;
        let address = wide(self.get(SIGNAL_LOW) & !3, self.get(SIGNAL_HIGH));
        let value = self.get(SIGNAL_VALUE).to_le_bytes();
        if around.host.write(address, &value).is_err() {
            around.violated(What::Unreachable);
        }
    }

    fn disarm(&mut self) {
        if self.signal == Signal::Armed {
            self.signal = Signal::None;
        }
    }

    fn enable(&mut self, around: &mut Surroundings<'_>) {
        if !self.rests() {
            around.violated(What::Early);
        }
        around.record.misled.settle(around.number);
        (self.head, self.tail, self.bad_ring) = (0, 0, false);
        self.late = None;
        match self.ring(around.host) {
            Some(ring) => self.state = State::Runs(ring),
            None => self.fail(around),
        }
    }

    /// The ring that the registers describe, if it is in its window.
    fn ring(&self, host: &mut dyn Host) -> Option<Ring> {
        let size = self.get(RING_SIZE);
        let ring = Ring {
            window: self.get(RING_WINDOW).try_into().ok()?,
            offset: wide(self.get(RING_OFFSET_LOW), self.get(RING_OFFSET_HIGH)),
            len: 1 << Some(size).filter(|&size| size <= MAX_RING_SIZE)?,
        };
        let bytes = u64::from(ring.len) * SIZE as u64;
        let memory = Memory::new(&self.windows, host);
        memory.locate(ring.window, ring.offset, bytes).ok()?;
        (ring.offset % SIZE as u64 == 0).then_some(ring)
    }

    fn disable(&mut self, now: u64) {
        self.disarm();
        self.task = None;
        if !self.rests() {
            self.state = State::Stops(now + REST);
        }
    }

    /// Comes to rest because of its ring.
    fn fail(&mut self, around: &mut Surroundings<'_>) {
        self.bad_ring = true;
        self.task = None;
        self.state = State::Rests;
        around.interrupt();
    }

    fn get(&self, register: u32) -> u32 {
        self.words[register as usize / 4]
    }

    fn set(&mut self, register: u32, value: u32) {
        self.words[register as usize / 4] = value;
    }
}

/// Writes the completion of a descriptor, by its count since the queue was enabled: its status last.
fn report(
    memory: &mut Memory<'_>,
    ring: Ring,
    number: u32,
    completion: &[u8],
) -> Result<(), Status> {
    let at = ring.at(number) + COMPLETION as u64;
    let (status, rest) = completion.split_at(size_of::<u32>());
    memory.write(ring.window, at + status.len() as u64, rest)?;
    memory.write(ring.window, at, status)
}

fn flag(condition: bool, bit: u32) -> u32 {
    if condition { bit } else { 0 }
}
