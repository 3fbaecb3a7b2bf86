// SPDX-License-Identifier: MIT OR Apache-2.0

//! A descriptor that is being executed.

use engine::{
    descriptor::{self, Completion, Descriptor, Operation, Status},
    fragment::{self, Fragment},
};

use super::{
    arithmetic::{fill, same, sum_bf16, sum_f32},
    windows::Memory,
};

/// Most bytes of a step; a multiple of all units.
const CHUNK: usize = 64 * 1024;

/// What bytes pass through.
#[derive(Debug)]
pub(super) struct Buffers {
    source: Box<[u8]>,
    destination: Box<[u8]>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            source: vec![0; CHUNK].into(),
            destination: vec![0; CHUNK].into(),
        }
    }
}

/// What is left of a fragment, which is not nothing.
#[derive(Debug, Clone, Copy)]
struct Part {
    source: u64,
    destination: u64,
    left: u32,
}

/// A descriptor, and how far it is.
#[derive(Debug)]
pub(super) struct Task {
    descriptor: Descriptor,
    /// It was not understood: the descriptor is another one.
    malformed: bool,
    fragments: u32,
    bytes: u64,
    part: Option<Part>,
}

impl Task {
    pub(super) fn new(bytes: &[u8; descriptor::SIZE]) -> Self {
        let decoded = Descriptor::decode(bytes);
        Self {
            descriptor: decoded.unwrap_or(Descriptor {
                interrupt: Descriptor::wants_interrupt(bytes),
                ..Descriptor::default()
            }),
            malformed: decoded.is_none(),
            fragments: 0,
            bytes: 0,
            part: None,
        }
    }

    /// Reports everything as done, although nothing is.
    pub(super) fn pretend(&mut self) {
        self.fragments = self.descriptor.fragments;
        self.malformed = false;
    }

    /// Whether an interrupt is asked for.
    pub(super) fn interrupts(&self) -> bool {
        self.descriptor.interrupt
    }

    /// Whether the signal is.
    pub(super) fn signals(&self) -> bool {
        self.descriptor.signal
    }

    /// Bytes that were worked on so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What to say of it at the end.
    pub(super) fn completion(&self, status: Status) -> Completion {
        Completion {
            status,
            fragments: self.fragments,
            bytes: self.bytes,
        }
    }

    /// Begins a fragment, or works on a chunk of it. Returns the status when there is nothing more to do.
    pub(super) fn step(
        &mut self,
        memory: &mut Memory<'_>,
        buffers: &mut Buffers,
    ) -> Option<Status> {
        let Descriptor {
            operation,
            fragments,
            ..
        } = self.descriptor;
        let is_over = operation == Operation::Nothing || self.fragments == fragments;
        let result = match self.part {
            _ if self.malformed => Err(Status::Malformed),
            Some(part) => self.work(part, memory, buffers),
            None if is_over => Ok(Some(Status::Done)),
            None => self.begin(memory).map(|()| None),
        };
        result.unwrap_or_else(Some)
    }

    /// Begins the next fragment, of which all is checked before any of it is done.
    fn begin(&mut self, memory: &mut Memory<'_>) -> Result<(), Status> {
        const SIZE: u64 = fragment::SIZE as u64;
        let task = &self.descriptor;
        if task.list % SIZE != 0 {
            return Err(Status::Malformed);
        }
        memory.locate(
            task.list_window,
            task.list,
            SIZE * u64::from(task.fragments),
        )?;
        let mut bytes = [0; fragment::SIZE];
        let at = task.list + SIZE * u64::from(self.fragments);
        memory.read(task.list_window, at, &mut bytes)?;
        let fragment = Fragment::decode(bytes);
        if fragment.len % task.operation.unit() != 0 {
            return Err(Status::Malformed);
        }
        let end = |base: u64, offset: u64| base.checked_add(offset).ok_or(Status::Outside);
        let (mut source, len) = (0, u64::from(fragment.len));
        if reads(task.operation) {
            source = end(task.source, fragment.source.into())?;
            memory.locate(task.source_window, source, len)?;
        }
        let destination = end(task.destination, fragment.destination)?;
        memory.locate(task.destination_window, destination, len)?;
        self.go_on(Part {
            source,
            destination,
            left: fragment.len,
        });
        Ok(())
    }

    fn work(
        &mut self,
        part: Part,
        memory: &mut Memory<'_>,
        buffers: &mut Buffers,
    ) -> Result<Option<Status>, Status> {
        let task = &self.descriptor;
        let len = CHUNK.min(part.left as usize);
        let (source, destination) = (&mut buffers.source[..len], &mut buffers.destination[..len]);
        if reads(task.operation) {
            memory.read(task.source_window, part.source, source)?;
        }
        if combines(task.operation) {
            memory.read(task.destination_window, part.destination, destination)?;
        }
        match task.operation {
            Operation::Nothing => {}
            Operation::Copy => destination.copy_from_slice(source),
            Operation::Fill => fill(destination, task.value),
            Operation::SumF32 => sum_f32(destination, source),
            Operation::SumBf16 => sum_bf16(destination, source),
            Operation::Compare => {
                let same = same(source, destination);
                if same < len {
                    self.bytes += same as u64;
                    return Ok(Some(Status::Different));
                }
            }
        }
        if task.operation != Operation::Compare {
            memory.write(task.destination_window, part.destination, destination)?;
        }
        self.bytes += len as u64;
        self.go_on(Part {
            source: part.source + len as u64,
            destination: part.destination + len as u64,
            left: part.left - len as u32,
        });
        Ok(None)
    }

    /// Goes on with a part, or behind it if nothing is left.
    fn go_on(&mut self, part: Part) {
        self.part = Some(part).filter(|part| part.left != 0);
        if self.part.is_none() {
            self.fragments += 1;
        }
    }
}

/// Whether an operation reads its source.
fn reads(operation: Operation) -> bool {
    !matches!(operation, Operation::Nothing | Operation::Fill)
}

/// Whether it reads its destination, too.
fn combines(operation: Operation) -> bool {
    reads(operation) && operation != Operation::Copy
}
