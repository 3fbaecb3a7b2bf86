// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measurements and reports that jobs share.

use std::time::{Duration, Instant};

use protocol::{Event, JobId, Mismatch, Payload};

use crate::outbox::send_event;

/// Progress is reported at most this often.
const INTERVAL: Duration = Duration::from_millis(100);

/// Time from the first byte to the last, and progress events in between.
pub(super) struct Meter {
    job: JobId,
    first: Option<Instant>,
    last: Option<Instant>,
    reported: Option<Instant>,
}

impl Meter {
    pub(super) fn new(job: JobId) -> Self {
        Self {
            job,
            first: None,
            last: None,
            reported: None,
        }
    }

    /// Marks the start, if that is not the first byte's arrival.
    pub(super) fn start(&mut self) {
        self.first.get_or_insert_with(Instant::now);
    }

    /// Records that `bytes` have passed so far.
    pub(super) fn passed(&mut self, bytes: u64) {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        if self
            .reported
            .is_none_or(|reported| now - reported >= INTERVAL)
        {
            self.reported = Some(now);
            send_event(self.job, Event::Progress { bytes });
        }
    }

    /// Marks the end, if that is not the last byte's passing.
    pub(super) fn end(&mut self) {
        self.last = Some(Instant::now());
    }

    pub(super) fn elapsed_ns(&self) -> u64 {
        let elapsed = self.first.zip(self.last).map(|(first, last)| last - first);
        elapsed
            .unwrap_or_default()
            .as_nanos()
            .try_into()
            .unwrap_or(u64::MAX)
    }
}

/// Compares a stream with the payload up to the first wrong byte.
pub(super) struct Checker {
    payload: Payload,
    mismatch: Option<Mismatch>,
}

impl Checker {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            payload: Payload::new(seed),
            mismatch: None,
        }
    }

    /// Checks `bytes` at `offset` of the stream.
    pub(super) fn check(&mut self, offset: u64, bytes: &[u8]) {
        if self.mismatch.is_none() {
            self.mismatch = self.payload.check(offset, bytes).err();
        }
    }

    pub(super) fn mismatch(&self) -> Option<Mismatch> {
        self.mismatch
    }
}
