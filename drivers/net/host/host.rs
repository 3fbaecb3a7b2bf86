// SPDX-License-Identifier: GPL-2.0

//! [`spsc`] of `net`, as the kernel compiles it, with the standard library in place of the kernel crate.

// What is tried calls the kernel by its name.
extern crate self as kernel;

mod shim;

/// What the shim is made of.
mod primitives {
    pub(crate) use std::sync::{
        atomic::{AtomicU32, Ordering},
        Arc,
    };
}

pub use shim::{prelude, sync};

#[path = "../spsc.rs"]
pub mod spsc;
