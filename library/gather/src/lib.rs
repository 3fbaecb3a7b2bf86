// SPDX-License-Identifier: MIT OR Apache-2.0

//! Puts what a device memory socket received into place, without a CPU touching it.
//!
//! A stream that is received into device memory lies there in fragments, in the order in which the NIC's
//! buffers came up. What computes on it wants it in one piece. On a GPU a kernel gathers it; here an
//! accelerator's engine does (the driver `copy_engine`), by the fragments' offsets and lengths.
//!
//! - [`WorkQueue`]: a work queue of the engine: descriptors in, by its doorbell and without a system call,
//!   completions out.
//! - [`TxQueue`]: a queue of a NIC that sends what an engine has computed when that rings.
//! - [`Gatherer`]: copies fragments to where in the stream they belong, many at a time.

mod error;
mod gatherer;
mod portal;
mod work_queue;

pub use engine::{
    descriptor::{Completion, Operation, Status},
    fragment::Fragment,
};

pub use self::{
    error::{Error, Result},
    gatherer::Gatherer,
    work_queue::{CONTROL_BYTES, Command, LIST, SLOTS, TxQueue, Window, WorkQueue},
};
