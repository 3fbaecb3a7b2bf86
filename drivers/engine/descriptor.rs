// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What the engine is to do, and what became of it.
//!
//! ```text
//!        63            32 31       24 23       16 15     8 7      0
//! qword0 |     value     | dst window| src window| flags  | opcode |
//! qword1 | fragments     |       zero            | list window     |
//! qword2 |  offset of the list of fragments in the list window     |
//! qword3 |  base of the sources in the source window               |
//! qword4 |  base of the destinations in the destination window     |
//! qword5 |                      zero                               |
//! qword6 | fragments done|              status                     | written by the engine
//! qword7 |                      bytes                              | written by the engine
//! ```

/// Bytes of a descriptor.
pub const SIZE: usize = 64;
/// Where the completion is in a descriptor: its last 16 bytes.
pub const COMPLETION: usize = 48;
/// Bytes of a completion. The status is written last.
pub const COMPLETION_SIZE: usize = 16;

/// A sum of binary32 that is no number.
pub const NAN_F32: u32 = 0x7fc0_0000;
/// A sum of bfloat16 that is no number.
pub const NAN_BF16: u16 = 0x7fc0;

/// What the engine can do.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Operation {
    /// Nothing but what the flags say. Its fragments are not looked at.
    #[default]
    Nothing = 0,
    /// Copies. Source and destination of a fragment must not overlap.
    Copy = 1,
    /// Fills the destination with the value, which begins anew with each fragment.
    Fill = 2,
    /// Compares, up to the first difference.
    Compare = 3,
    /// Adds the source to the destination: numbers of IEEE 754 binary32, rounded to the nearest, to even in
    /// the middle. Every NaN is [`NAN_F32`]. Lengths are multiples of four.
    SumF32 = 4,
    /// As [`SumF32`](Self::SumF32), of bfloat16: the sum in binary32 is rounded once more in the same way.
    /// Every NaN is [`NAN_BF16`]. Lengths are multiples of two.
    SumBf16 = 5,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Nothing,
        Self::Copy,
        Self::Fill,
        Self::Compare,
        Self::SumF32,
        Self::SumBf16,
    ];

    /// Bytes of a number that it adds; 1 for others.
    #[inline]
    pub const fn unit(self) -> u32 {
        match self {
            Self::SumF32 => 4,
            Self::SumBf16 => 2,
            _ => 1,
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Nothing,
            1 => Self::Copy,
            2 => Self::Fill,
            3 => Self::Compare,
            4 => Self::SumF32,
            5 => Self::SumBf16,
            _ => return None,
        })
    }
}

const INTERRUPT: u8 = 1 << 0;
const SIGNAL: u8 = 1 << 1;
const KNOWN_FLAGS: u8 = INTERRUPT | SIGNAL;

/// What the engine is to do.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Descriptor {
    /// What.
    pub operation: Operation,
    /// Send the queue's interrupt when it is completed.
    pub interrupt: bool,
    /// Write the queue's signal when it is completed without an error, if that is armed.
    pub signal: bool,
    /// The window that is read from.
    pub source_window: u8,
    /// The window that is written to, and read by [`Operation::Compare`].
    pub destination_window: u8,
    /// What [`Operation::Fill`] fills with, the lowest byte first.
    pub value: u32,
    /// The window that the list of fragments is in.
    pub list_window: u8,
    /// How many fragments there are.
    pub fragments: u32,
    /// Where the list is in its window, in bytes, a multiple of 16.
    pub list: u64,
    /// Added to the sources of fragments.
    pub source: u64,
    /// Added to the destinations of fragments.
    pub destination: u64,
}

impl Descriptor {
    /// The bytes in memory, not completed.
    pub fn encode(&self) -> [u8; SIZE] {
        let flags = flag(self.interrupt, INTERRUPT) | flag(self.signal, SIGNAL);
        let first = self.operation as u64
            | u64::from(flags) << 8
            | u64::from(self.source_window) << 16
            | u64::from(self.destination_window) << 24
            | u64::from(self.value) << 32;
        let second = u64::from(self.list_window) | u64::from(self.fragments) << 32;
        let quadwords = [first, second, self.list, self.source, self.destination];
        let mut bytes = [0; SIZE];
        for (to, quadword) in bytes.chunks_exact_mut(8).zip(quadwords) {
            to.copy_from_slice(&quadword.to_le_bytes());
        }
        bytes
    }

    /// The inverse of [`encode`](Self::encode), whatever the completion; `None` if the operation is unknown
    /// or what must be zero is not.
    pub fn decode(bytes: &[u8; SIZE]) -> Option<Self> {
        let [first, second, list, source, destination, zero] = quadwords(bytes);
        let flags = (first >> 8) as u8;
        let operation = Operation::from_byte(first as u8)?;
        if flags & !KNOWN_FLAGS != 0 || second & 0xffff_ff00 != 0 || zero != 0 {
            return None;
        }
        Some(Self {
            operation,
            interrupt: flags & INTERRUPT != 0,
            signal: flags & SIGNAL != 0,
            source_window: (first >> 16) as u8,
            destination_window: (first >> 24) as u8,
            value: (first >> 32) as u32,
            list_window: second as u8,
            fragments: (second >> 32) as u32,
            list,
            source,
            destination,
        })
    }

    /// Whether an interrupt is asked for, in a descriptor that may be none otherwise.
    #[inline]
    pub const fn wants_interrupt(bytes: &[u8; SIZE]) -> bool {
        bytes[1] & INTERRUPT != 0
    }
}

#[inline]
const fn flag(condition: bool, bit: u8) -> u8 {
    if condition {
        bit
    } else {
        0
    }
}

/// The first quadwords.
fn quadwords<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut all = [0; N];
    for (to, from) in all.iter_mut().zip(bytes.chunks_exact(8)) {
        // A chunk has 8 bytes.
        *to = from
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte));
    }
    all
}

/// What became of a descriptor.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Status {
    /// All was done.
    Done = 1,
    /// [`Operation::Compare`] has found a difference. No error.
    Different = 2,
    /// The descriptor makes no sense, or a length does not fit the operation.
    Malformed = 3,
    /// A fragment, or the list, is not in its window, or the window is closed. Those that there are not are.
    /// The list, and each fragment, is looked at as a whole before anything of it is done.
    Outside = 4,
    /// Nothing answers where the window says that there is memory.
    Fault = 5,
}

impl Status {
    /// Whether the engine did not do what it was to.
    #[inline]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Done | Self::Different)
    }
}

/// What the engine says about a descriptor when it is done with it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// What became of it.
    pub status: Status,
    /// Fragments that were worked on to their end.
    pub fragments: u32,
    /// Bytes that were worked on: of [`Operation::Compare`], those before the first difference. With an
    /// error, there may be others.
    pub bytes: u64,
}

impl Completion {
    /// The bytes in memory.
    pub fn encode(&self) -> [u8; COMPLETION_SIZE] {
        let value = u128::from(self.status as u32)
            | u128::from(self.fragments) << 32
            | u128::from(self.bytes) << 64;
        value.to_le_bytes()
    }

    /// The inverse of [`encode`](Self::encode); `None` as long as the descriptor is not completed, or if the
    /// status is none.
    pub fn decode(bytes: [u8; COMPLETION_SIZE]) -> Option<Self> {
        let value = u128::from_le_bytes(bytes);
        let status = match value as u32 {
            1 => Status::Done,
            2 => Status::Different,
            3 => Status::Malformed,
            4 => Status::Outside,
            5 => Status::Fault,
            _ => return None,
        };
        Some(Self {
            status,
            fragments: (value >> 32) as u32,
            bytes: (value >> 64) as u64,
        })
    }
}
