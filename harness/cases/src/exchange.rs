// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pings, and raw frames of no protocol that a stack knows.

use std::{
    thread,
    time::{Duration, Instant},
};

use protocol::{
    net::Mac,
    traffic::{ExchangeFrames, Ping, SendFrame},
};

use crate::{CaseError, Family, Result, Station, Testbed, testbed::PATIENCE_MS};

/// Ethernet types for experiments (IEEE 802): no protocol uses them.
pub const EXPERIMENTAL: [u16; 2] = [0x88b5, 0x88b6];

/// How long one attempt in [`Testbed::assert_filter`] may take, in milliseconds.
const ATTEMPT_MS: u64 = 5000;

/// An Ethernet header.
#[must_use]
pub fn ethernet(from: Mac, to: Mac, ethertype: u16) -> Vec<u8> {
    [&to.0[..], &from.0, &ethertype.to_be_bytes()].concat()
}

impl Testbed {
    /// Pings a station `count` times with `size` bytes. Fails unless each is answered, and right.
    pub fn ping(
        &self,
        from: Station,
        to: Station,
        family: Family,
        count: u32,
        size: u32,
    ) -> Result {
        let report = self.guest.call(Ping {
            ns: from.ns,
            to: to.address(family),
            count,
            size,
            timeout_ms: PATIENCE_MS,
        })?;
        if (report.received, report.corrupt) == (count, 0) {
            Ok(())
        } else {
            Err(CaseError::new(format!(
                "{count} pings with {size} bytes from {} over {family:?}: {report:?}",
                from.interface
            )))
        }
    }

    /// Sends a frame as it is, without padding or a frame check sequence.
    pub fn send_frame(&self, from: Station, frame: Vec<u8>) -> Result {
        Ok(self.guest.call(SendFrame::on(from, frame))?)
    }

    /// Has the peer send frames; returns the first `count` of a type that arrive at a station.
    /// Fails if fewer do.
    pub fn exchange(
        &self,
        frames: Vec<Vec<u8>>,
        to: Station,
        ethertype: u16,
        count: usize,
    ) -> Result<Vec<Vec<u8>>> {
        self.exchange_within(frames, to, ethertype, count, PATIENCE_MS)
    }

    fn exchange_within(
        &self,
        frames: Vec<Vec<u8>>,
        to: Station,
        ethertype: u16,
        count: usize,
        timeout_ms: u64,
    ) -> Result<Vec<Vec<u8>>> {
        Ok(self.guest.call(ExchangeFrames {
            from: self.peer.ns,
            through: self.peer.name(),
            frames,
            to: to.ns,
            at: to.name(),
            ethertype,
            hash: None,
            count,
            timeout_ms,
        })?)
    }

    /// Asserts that the NIC under test accepts frames from the peer, or that it does not: frames to
    /// `to` with a `tag` of four bytes, or none. `own` is an address that it certainly accepts.
    #[track_caller]
    pub fn assert_filter(&self, to: Mac, tag: &[u8], own: Mac, lets_in: bool, what: &str) {
        let [ethertype, _] = EXPERIMENTAL;
        let frame = |to, tag: &[u8], last| {
            let mut frame = ethernet(self.peer.mac(), to, ethertype);
            let addresses = 2 * to.0.len();
            frame.splice(addresses..addresses, tag.iter().copied());
            frame.extend([0; 45]);
            frame.push(last);
            frame
        };
        // The kernel updates the driver's filters asynchronously, in a work item.
        let deadline = Instant::now() + Duration::from_millis(PATIENCE_MS);
        for attempt in (0..=u8::MAX).cycle() {
            // They arrive in order: one that is accepted arrives before the last. Each attempt uses
            // different numbers.
            let [first, second, last] =
                [1, 2, 3].map(|n: u8| n.wrapping_add(attempt.wrapping_mul(3)));
            let sent = [(to, tag, first), (to, tag, second), (own, &[][..], last)];
            let expected: &[u8] = if lets_in {
                &[first, second, last]
            } else {
                &[last]
            };
            let frames = sent.map(|(to, tag, last)| frame(to, tag, last)).to_vec();
            let came =
                self.exchange_within(frames, self.local, ethertype, expected.len(), ATTEMPT_MS);
            let came = came.map(|frames| frames.iter().filter_map(|f| f.last().copied()).collect());
            if came.as_ref().is_ok_and(|came: &Vec<u8>| came == expected) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{to}: {what}: expected {expected:?} to arrive, not {came:?}"
            );
            thread::sleep(Duration::from_millis(500));
        }
    }
}
