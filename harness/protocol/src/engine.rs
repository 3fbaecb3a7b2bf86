// SPDX-License-Identifier: MIT OR Apache-2.0

//! The engine of an accelerator.

use serde::{Deserialize, Serialize};

use crate::{Memory, bytes::Bytes};

/// Opens a work queue, has the engine do something with memory, step by step, and closes it.
///
/// Fails with EBUSY if no work queue is free, and as importing memory does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Execute {
    /// Number of the engine, from 0.
    pub engine: u32,
    /// How many work queues are open besides.
    pub besides: u32,
    /// Where the memory comes from.
    pub memory: Memory,
    /// What each piece of memory has in it before. Each is a dma-buf of its own.
    pub pieces: Vec<Bytes>,
    /// How long each step may take.
    pub timeout_ms: u64,
    /// Mark two windows for each step: one in which the engine is given it, one in which it is waited for.
    pub marked: bool,
    /// What is to be done.
    pub steps: Vec<Step>,
}

/// What the engine is to do in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What.
    pub operation: Operation,
    /// Which piece of memory the sources are in. There may be no such piece.
    pub source: u8,
    /// Which one the destinations are in.
    pub destination: u8,
    /// What [`Operation::Fill`] fills with.
    pub value: u32,
    /// Sources, lengths, destinations, in bytes.
    pub fragments: Vec<(u32, u32, u64)>,
}

/// What the engine can do (`drivers/engine/descriptor.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are described there")]
pub enum Operation {
    Copy,
    Fill,
    Compare,
    SumF32,
    SumBf16,
}

/// What became of a step (`drivers/engine/descriptor.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are described there")]
pub enum Status {
    Done,
    Different,
    Malformed,
    Outside,
    Fault,
}

/// What the engine says of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What became of it.
    pub status: Status,
    /// Fragments that were worked on.
    pub fragments: u32,
    /// Bytes that were.
    pub bytes: u64,
}

/// The answer to [`Execute`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    /// What became of each step, up to one that has no completion.
    pub outcomes: Vec<Outcome>,
    /// Why that one has none.
    pub failure: Option<String>,
    /// What is in each piece of memory afterwards.
    pub pieces: Vec<Bytes>,
}
