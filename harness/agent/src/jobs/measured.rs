// SPDX-License-Identifier: MIT OR Apache-2.0

//! What measured sinks and sources have in common.

use std::{fs, thread};

use anyhow::{Context, Result, anyhow, ensure};
use devmem_tcp::memory::Memory;
use protocol::{Ns, Payload, snmp};
use rustix::{
    thread::{ClockId, clock_nanosleep_absolute},
    time::{Timespec, clock_gettime},
};

use super::memory;

/// A dma-buf that a stream is copied into or out of, wrapping around at its end.
pub(super) struct Copies {
    memory: Memory,
    at: usize,
}

impl Copies {
    /// Creates the dma-buf, for pieces of at most `piece` bytes.
    pub(super) fn new(from: protocol::Memory, bytes: u64, piece: u32) -> Result<Self> {
        ensure_room(bytes, piece)?;
        Ok(Self {
            memory: memory::allocate(from, bytes)?,
            at: 0,
        })
    }

    /// Where the next `len` bytes go.
    fn place(&mut self, len: usize) -> usize {
        if self.at + len > self.memory.len() {
            self.at = 0;
        }
        let place = self.at;
        self.at += len;
        place
    }

    /// Copies a piece in.
    pub(super) fn copy_in(&mut self, piece: &[u8]) -> Result<()> {
        let place = self.place(piece.len());
        Ok(self.memory.view().write_at(place, piece)?)
    }

    /// Copies the next piece out.
    pub(super) fn copy_out(&mut self, piece: &mut [u8]) -> Result<()> {
        let place = self.place(piece.len());
        Ok(self.memory.view().read_at(place, piece)?)
    }

    /// The dma-buf.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// Fails unless a dma-buf holds a piece of the stream.
pub(super) fn ensure_room(bytes: u64, piece: u32) -> Result<()> {
    ensure!(
        piece != 0 && u64::from(piece) <= bytes,
        "a dma-buf of {bytes} bytes does not hold pieces of {piece} bytes"
    );
    Ok(())
}

/// Fills a dma-buf with nonzero data.
pub(super) fn fill(memory: &Memory) -> Result<()> {
    let mut bytes = vec![0; memory.len()];
    Payload::new(0).fill(0, &mut bytes);
    Ok(memory.write_at(0, &bytes)?)
}

/// Waits for a round time of the guest's clock that is at least a second away.
///
/// The host's requests arrive at arbitrary times. Measurements must not depend on them: drivers
/// adapt to intervals that they measure, and settle into one pattern or another.
pub(super) fn wait_for_round_time() -> Result<()> {
    const ROUND: i64 = 10;
    let now = clock_gettime(ClockId::Monotonic);
    let start = Timespec {
        tv_sec: (now.tv_sec + 1) / ROUND * ROUND + ROUND,
        tv_nsec: 0,
    };
    clock_nanosleep_absolute(ClockId::Monotonic, &start).context("sleeping")
}

/// Does work with each item in a thread of its own, and waits for all of them.
pub(super) fn in_threads<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    thread::scope(|scope| {
        let work = &work;
        let start = |item| scope.spawn(move || work(item));
        let threads: Vec<_> = items.into_iter().map(start).collect();
        let panicked = |_| Err(anyhow!("a thread of the job panicked"));
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|ended| ended.unwrap_or_else(panicked)).collect()
    })
}

/// Packets that an interface has received so far.
pub(super) fn packets(ns: Ns, interface: &str) -> Result<u64> {
    let stats = crate::netns::within(ns, || crate::rtnetlink::stats(interface))?;
    Ok(stats.rx_packets)
}

/// TCP segments that a namespace has retransmitted so far.
pub(super) fn retransmits(ns: Ns) -> Result<u64> {
    let text = crate::netns::within(ns, || {
        fs::read_to_string("/proc/thread-self/net/snmp").context("reading the stack's counters")
    })?;
    snmp::value(&text, "Tcp", "RetransSegs").context("the stack has no counter RetransSegs")
}
