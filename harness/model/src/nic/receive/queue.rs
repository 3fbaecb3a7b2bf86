// SPDX-License-Identifier: MIT OR Apache-2.0

//! A receive queue: descriptors are prefetched, filled, and written back (82576 datasheet, chapters
//! "Receive Descriptor Fetching" and "Receive Descriptor Write-Back").

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use i82576::{
    limits::{HEADER_BUFFER_UNIT, PAYLOAD_BUFFER_UNIT},
    regs::{rdbah, rdbal, rdh, rdlen, rdt, rxdctl, srrctl},
};

use super::{
    fields::{DD, EOP, LENGTH_SHIFT},
    split::has_header_buffer,
};
use crate::{
    Host,
    lies::{Kind, Lies},
    nic::{lent::Memory, registers::Registers, ring::Ring, violation::What},
};

/// Descriptors that the device can hold for a queue.
const ON_CHIP: u32 = 64;
/// The payload buffer's size where SRRCTL doesn't say one, in bytes.
const DEFAULT_BUFFER: usize = 2048;

/// A packet of 60 bytes that was never received.
const MADE_UP: [u64; 2] = [0, 60 << LENGTH_SHIFT | EOP | DD];

/// RXDCTL: the thresholds.
const PREFETCH: u32 = 0x1f;
const HOST_SHIFT: u32 = 8;
const WRITE_BACK_SHIFT: u32 = 16;
/// SRRCTL: the sizes of both buffers.
const BSIZEPACKET: u32 = 0x7f;
const BSIZEHEADER_SHIFT: u32 = 8;
const BSIZEHEADER: u32 = 0x3f;

/// How a packet lies in its buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// Bytes in the payload buffer.
    pub(crate) len: u16,
    /// The packet ends with it.
    pub(crate) last: bool,
}

/// A receive queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Descriptors on chip, with where they are in the ring.
    fetched: VecDeque<(u32, [u64; 2])>,
    /// The next to be fetched.
    next: u32,
    /// Filled, and not written back.
    done: Vec<(u32, [u64; 2])>,
    /// To be written back after what is written back next.
    late: Vec<(u32, [u64; 2])>,
    /// What was written back last of each descriptor that is not on chip, by its place in the ring.
    written: BTreeMap<u32, [u64; 2]>,
    /// What was once more, and may not have been fetched since.
    repeated: BTreeMap<u32, [u64; 2]>,
}

impl Queue {
    /// Begins at the head, as when the queue is enabled.
    pub(crate) fn start(&mut self, number: u16, registers: &Registers) {
        *self = Self {
            next: registers.get(rdh(number)),
            ..Self::default()
        };
    }

    /// Prefetches when the thresholds say so: few are left on chip, and enough are ready in memory.
    pub(crate) fn prefetch(
        &mut self,
        number: u16,
        registers: &Registers,
        memory: &mut Memory<'_>,
    ) -> Result<(), What> {
        let control = registers.get(rxdctl(number));
        let on_chip = self.fetched.len() as u32;
        let ready = ring(number, registers).available(self.next, registers.get(rdt(number)));
        let enough = (control >> HOST_SHIFT & PREFETCH).max(1);
        if on_chip < control & PREFETCH && ready >= enough {
            self.fetch(ON_CHIP, number, registers, memory)?;
        }
        Ok(())
    }

    /// Fetches until so many are on chip, or none is left.
    fn fetch(
        &mut self,
        wanted: u32,
        number: u16,
        registers: &Registers,
        memory: &mut Memory<'_>,
    ) -> Result<(), What> {
        let ring = ring(number, registers);
        let ready = ring.available(self.next, registers.get(rdt(number)));
        let (control, mut posted) = (registers.get(srrctl(number)), Ok(()));
        for _ in 0..ready {
            if self.fetched.len() >= wanted as usize {
                break;
            }
            let (index, raw) = (self.next, ring.read(self.next, memory)?);
            self.next = ring.next(index);
            self.written.remove(&index);
            let repeated = self.repeated.remove(&index);
            if repeated.is_some_and(|[low, high]| raw[0] == low || raw[1] == high) {
                // What the driver posted there is lost. To it the descriptor is done.
                continue;
            }
            self.fetched.push_back((index, raw));
            for (address, size) in buffers(raw, control) {
                posted = posted.and(memory.post(number, address, size));
            }
        }
        posted
    }

    /// Whether there are descriptors for a packet, of which so many bytes go to the header buffer; they
    /// are fetched.
    pub(crate) fn has_room(
        &mut self,
        packet: (&[u8], usize),
        number: u16,
        registers: &Registers,
        memory: &mut Memory<'_>,
    ) -> Result<bool, What> {
        let count = pieces(packet, number, registers).count;
        self.fetch(
            u32::try_from(count).unwrap_or(u32::MAX),
            number,
            registers,
            memory,
        )?;
        Ok(self.fetched.len() >= count)
    }

    /// Puts a packet for which there [is room](Self::has_room) into buffers; `describe` makes what is
    /// written back for each.
    pub(crate) fn fill(
        &mut self,
        packet: (&[u8], usize),
        number: u16,
        registers: &Registers,
        memory: &mut Memory<'_>,
        describe: impl Fn(Piece) -> [u64; 2],
    ) -> Result<(), What> {
        let Pieces {
            headers,
            payload,
            size,
            count,
        } = pieces(packet, number, registers);
        for nth in 0..count {
            let Some((index, raw)) = self.fetched.pop_front() else {
                return Ok(());
            };
            let [buffer, header_buffer] = raw;
            let piece = payload.chunks(size).nth(nth).unwrap_or_default();
            let mut written = Ok(());
            if nth == 0 && !headers.is_empty() {
                written = memory.write(header_buffer & !1, headers);
            }
            if !piece.is_empty() {
                written = written.and(memory.write(buffer, piece));
            }
            take_back(raw, number, registers, memory);
            written?;
            let described = describe(Piece {
                // A payload buffer has at most 127 KiB, a frame less than 16.
                len: u16::try_from(piece.len()).unwrap_or(u16::MAX),
                last: nth + 1 == count,
            });
            self.done.push((index, described));
        }
        Ok(())
    }

    /// Whether enough are filled to be written back.
    pub(crate) fn is_due(&self, number: u16, registers: &Registers) -> bool {
        let threshold = registers.get(rxdctl(number)) >> WRITE_BACK_SHIFT & PREFETCH;
        self.done.len() >= (threshold as usize).max(1)
    }

    /// Whether any is filled and not written back.
    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Writes back what is filled.
    pub(crate) fn write_back(
        &mut self,
        number: u16,
        registers: &mut Registers,
        lies: &mut Lies,
        memory: &mut Memory<'_>,
    ) -> Result<(), What> {
        let ring = ring(number, registers);
        let late = std::mem::take(&mut self.late);
        for (index, raw) in self.done.drain(..) {
            registers.set(rdh(number), ring.next(index));
            if lies.tells(Kind::Missing) {
                continue;
            }
            if lies.tells(Kind::Late) {
                self.late.push((index, raw));
                continue;
            }
            let raw = lies.distort(raw);
            self.written.insert(index, raw);
            ring.write(index, raw, memory)?;
        }
        let premature = self.premature(number, registers, lies, memory);
        for (index, raw) in late.into_iter().chain(premature) {
            self.written.insert(index, raw);
            ring.write(index, raw, memory)?;
        }
        if let Some((index, raw)) = self.repeat(lies) {
            ring.write(index, raw, memory)?;
        }
        Ok(())
    }

    /// Takes any of the descriptors that were written back, to be once more. The driver may have posted it again, or
    /// be about to.
    fn repeat(&mut self, lies: &mut Lies) -> Option<(u32, [u64; 2])> {
        let value = lies.tell(Kind::Repeated)?;
        let nth = value.checked_rem(self.written.len() as u64)?;
        // CAST: It is less than there are.
        let (&index, &raw) = self.written.iter().nth(nth as usize)?;
        self.repeated.insert(index, raw);
        Some((index, raw))
    }

    /// Makes up a packet in a descriptor that is on chip. It is not filled any more: the driver has its
    /// buffers back.
    fn premature(
        &mut self,
        number: u16,
        registers: &Registers,
        lies: &mut Lies,
        memory: &mut Memory<'_>,
    ) -> Option<(u32, [u64; 2])> {
        let value = lies.tell(Kind::Premature)?;
        let nth = value.checked_rem(self.fetched.len() as u64)?;
        // CAST: It is less than there are.
        let (index, raw) = self.fetched.remove(nth as usize)?;
        take_back(raw, number, registers, memory);
        Some((index, lies.distort(MADE_UP)))
    }
}

/// How a packet is cut.
struct Pieces<'a> {
    headers: &'a [u8],
    payload: &'a [u8],
    /// Bytes of a payload buffer, and how many are taken: one at least.
    size: usize,
    count: usize,
}

fn pieces<'a>(packet: (&'a [u8], usize), number: u16, registers: &Registers) -> Pieces<'a> {
    let (bytes, header) = packet;
    let (headers, payload) = bytes.split_at(header.min(bytes.len()));
    let size = payload_buffer(registers.get(srrctl(number)));
    Pieces {
        headers,
        payload,
        size,
        count: payload.len().div_ceil(size).max(1),
    }
}

/// The buffers of a descriptor that is fetched: where they are, and their sizes.
fn buffers([buffer, header]: [u64; 2], srrctl: u32) -> impl Iterator<Item = (u64, usize)> {
    let header = has_header_buffer(srrctl).then(|| (header & !1, header_buffer(srrctl)));
    [(buffer, payload_buffer(srrctl))].into_iter().chain(header)
}

/// The buffers of a queue's descriptor are the driver's again.
fn take_back(raw: [u64; 2], number: u16, registers: &Registers, memory: &mut Memory<'_>) {
    for (address, _) in buffers(raw, registers.get(srrctl(number))) {
        memory.take_back(number, address);
    }
}

pub(super) fn ring(number: u16, registers: &Registers) -> Ring {
    Ring::new(registers, rdbal(number), rdbah(number), rdlen(number))
}

/// The payload buffer's size in bytes, by SRRCTL.
fn payload_buffer(srrctl: u32) -> usize {
    match srrctl & BSIZEPACKET {
        0 => DEFAULT_BUFFER,
        kib => (kib * PAYLOAD_BUFFER_UNIT) as usize,
    }
}

/// The header buffer's size in bytes, by SRRCTL.
pub(crate) fn header_buffer(srrctl: u32) -> usize {
    ((srrctl >> BSIZEHEADER_SHIFT & BSIZEHEADER) * HEADER_BUFFER_UNIT) as usize
}
