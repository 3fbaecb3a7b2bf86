// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the flows of a measured sink receive together, and the marked window of it.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use anyhow::Result;
use protocol::{MeasuredSink, measure::MeasuredSinkReport};

use super::measured::{packets, retransmits};
use crate::lock::lock;

/// Counts of all flows.
pub(super) struct Flows<'a> {
    spec: &'a MeasuredSink,
    bytes: AtomicU64,
    reads: AtomicU64,
    fragments: AtomicU64,
    linear_bytes: AtomicU64,
    /// Bytes at which the next action is due.
    next: AtomicU64,
    window: Mutex<Window>,
}

enum Window {
    Before,
    Within(Counts, Instant),
    After(MeasuredSinkReport),
}

/// Counts at the start of the window, or at its end.
struct Counts {
    bytes: u64,
    reads: u64,
    fragments: u64,
    packets: u64,
    retransmits: u64,
}

impl<'a> Flows<'a> {
    pub(super) fn new(spec: &'a MeasuredSink) -> Self {
        Self {
            spec,
            bytes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            fragments: AtomicU64::new(0),
            linear_bytes: AtomicU64::new(0),
            next: AtomicU64::new(spec.skip),
            window: Mutex::new(Window::Before),
        }
    }

    /// Counts a receive call: `bytes`, in this many fragments of device memory.
    pub(super) fn received(&self, bytes: u64, fragments: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.fragments.fetch_add(fragments as u64, Relaxed);
        self.reads.fetch_add(1, Relaxed);
    }

    /// Counts bytes that did not arrive where they should have.
    pub(super) fn astray(&self, bytes: u64) {
        self.linear_bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes received so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Marks the start or end of the window when it is due. Call it between two receive calls.
    pub(super) fn look(&self) -> Result<()> {
        if self.bytes() < self.next.load(Relaxed) {
            return Ok(());
        }
        let mut window = lock(&self.window);
        // Another flow may have been faster.
        if self.bytes() < self.next.load(Relaxed) {
            return Ok(());
        }
        // The interface's counters are read outside the marks.
        match &*window {
            Window::Before => {
                // When these bytes had arrived: reading the counters takes long enough for more to
                // arrive.
                let at = Instant::now();
                let start = self.counts()?;
                self.next.store(start.bytes + self.spec.window, Relaxed);
                *window = Window::Within(start, at);
                marker::start();
            }
            Window::Within(start, at) => {
                marker::end();
                let elapsed = at.elapsed().as_nanos();
                let end = self.counts()?;
                self.next.store(u64::MAX, Relaxed);
                *window = Window::After(MeasuredSinkReport {
                    window_bytes: end.bytes - start.bytes,
                    window_packets: end.packets - start.packets,
                    window_reads: end.reads - start.reads,
                    window_fragments: end.fragments - start.fragments,
                    window_retransmits: end.retransmits - start.retransmits,
                    window_ns: elapsed.try_into().unwrap_or(u64::MAX),
                    ..MeasuredSinkReport::default()
                });
            }
            Window::After(..) => {}
        }
        Ok(())
    }

    fn counts(&self) -> Result<Counts> {
        Ok(Counts {
            bytes: self.bytes(),
            reads: self.reads.load(Relaxed),
            fragments: self.fragments.load(Relaxed),
            packets: packets(self.spec.ns, &self.spec.interface)?,
            retransmits: retransmits(self.spec.from)?,
        })
    }

    /// The report.
    pub(super) fn report(&self) -> MeasuredSinkReport {
        let window = match &*lock(&self.window) {
            Window::After(window) => window.clone(),
            _ => MeasuredSinkReport::default(),
        };
        MeasuredSinkReport {
            bytes: self.bytes(),
            linear_bytes: self.linear_bytes.load(Relaxed),
            ..window
        }
    }
}
