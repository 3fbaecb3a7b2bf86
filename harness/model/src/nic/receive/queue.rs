// SPDX-License-Identifier: MIT OR Apache-2.0

//! A receive queue: descriptors are prefetched, filled, and written back (82576 datasheet, chapters
//! "Receive Descriptor Fetching" and "Receive Descriptor Write-Back").

use std::collections::VecDeque;

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
        for _ in (self.fetched.len() as u32..wanted).take(ready as usize) {
            let raw = ring.read(self.next, memory)?;
            self.fetched.push_back((self.next, raw));
            self.next = ring.next(self.next);
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
            take_back(raw, registers.get(srrctl(number)), memory);
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
            ring.write(index, lies.distort(raw), memory)?;
        }
        let premature = self.premature(lies, registers.get(srrctl(number)), memory);
        for (index, raw) in late.into_iter().chain(premature) {
            ring.write(index, raw, memory)?;
        }
        Ok(())
    }

    /// Makes up a packet in a descriptor that is on chip. It is not filled any more: the driver has its
    /// buffers back.
    fn premature(
        &mut self,
        lies: &mut Lies,
        srrctl: u32,
        memory: &mut Memory<'_>,
    ) -> Option<(u32, [u64; 2])> {
        let value = lies.tell(Kind::Premature)?;
        let nth = value.checked_rem(self.fetched.len() as u64)?;
        // CAST: It is less than there are.
        let (index, raw) = self.fetched.remove(nth as usize)?;
        take_back(raw, srrctl, memory);
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

/// The buffers of a descriptor are the driver's again.
fn take_back(raw: [u64; 2], srrctl: u32, memory: &mut Memory<'_>) {
    for (address, _) in buffers(raw, srrctl) {
        memory.take_back(address);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::{
        lent::{Lent, Of},
        tests::Recorder,
    };
    use i82576::{
        limits::MAX_FRAME,
        regs::{srrctl::DescType, thresholds},
    };

    const BASE: u64 = 0x1000;

    /// A queue with so many buffers: descriptor `n` has payload at `0x10000 + n * 0x1000` and headers at
    /// `0x8000 + n * 0x100`.
    fn posted(count: u32) -> (Queue, Registers, Recorder, Lent) {
        let mut registers = Registers::default();
        let mut host = Recorder::with_memory(0x80000);
        registers.set(rdbal(1), BASE as u32);
        registers.set(rdlen(1), 64 * 16);
        registers.set(srrctl(1), srrctl::encode(1, 2, DescType::HeaderSplit, true));
        registers.set(rxdctl(1), thresholds(8, 4, 1));
        let ring = ring(1, &registers);
        for n in 0..count {
            let raw = [
                0x10000 + u64::from(n) * 0x1000,
                0x8000 + u64::from(n) * 0x100,
            ];
            ring.write(n, raw, &mut host).unwrap();
        }
        let mut queue = Queue::default();
        queue.start(1, &registers);
        registers.set(rdt(1), count);
        let mut lent = Lent::default();
        lent.enable(Of::Receive(1), [ring.range()]);
        (queue, registers, host, lent)
    }

    /// All memory there.
    fn memory<'a>(host: &'a mut Recorder, lent: &'a mut Lent) -> Memory<'a> {
        Memory { host, lent }
    }

    fn describe(piece: Piece) -> [u64; 2] {
        [u64::from(piece.last), u64::from(piece.len)]
    }

    #[test]
    fn headers_and_payload_go_to_their_buffers_and_payload_goes_on_in_the_next() {
        let (mut queue, mut registers, mut host, mut lent) = posted(4);
        let memory = &mut memory(&mut host, &mut lent);
        let packet: Vec<u8> = (0..2500u32).map(|n| n as u8).collect();
        let room = queue.has_room((&packet, 54), 1, &registers, memory);
        assert_eq!(room, Ok(true));
        let filled = queue.fill((&packet, 54), 1, &registers, memory, describe);
        assert_eq!(filled, Ok(()));
        assert!(queue.is_due(1, &registers));
        queue
            .write_back(1, &mut registers, &mut Lies::default(), memory)
            .unwrap();
        assert_eq!(host.memory[0x8000..0x8036], packet[..54]);
        for (n, piece) in packet[54..].chunks(1024).enumerate() {
            let at = 0x10000 + n * 0x1000;
            assert_eq!(host.memory[at..at + piece.len()], *piece);
        }
        let ring = ring(1, &registers);
        let raws = [0, 1, 2].map(|n| ring.read(n, &mut host).unwrap());
        assert_eq!(raws, [[0, 1024], [0, 1024], [1, 398]]);
        assert_eq!(registers.get(rdh(1)), 3);
    }

    #[test]
    fn a_packet_has_room_only_with_enough_buffers() {
        let (mut queue, registers, mut host, mut lent) = posted(2);
        let memory = &mut memory(&mut host, &mut lent);
        let room = queue.has_room((&[0; 3000], 0), 1, &registers, memory);
        assert_eq!(room, Ok(false));
        let room = queue.has_room((&[0; 2000], 0), 1, &registers, memory);
        assert_eq!(room, Ok(true));
    }

    #[test]
    fn what_is_prefetched_is_not_read_again() {
        let (mut queue, registers, mut host, mut lent) = posted(8);
        let memory = &mut memory(&mut host, &mut lent);
        queue.prefetch(1, &registers, memory).unwrap();
        // The driver writes to descriptors that it has given away.
        ring(1, &registers).write(0, [0; 2], memory).unwrap();
        queue
            .fill((&[7; 60], 0), 1, &registers, memory, describe)
            .unwrap();
        assert_eq!(host.memory[0x10000..0x1003c], [7; 60]);
    }

    #[test]
    fn few_descriptors_are_not_prefetched() {
        let (mut queue, registers, mut host, mut lent) = posted(3);
        let memory = &mut memory(&mut host, &mut lent);
        queue.prefetch(1, &registers, memory).unwrap();
        assert!(queue.fetched.is_empty(), "the host threshold is 4");
    }

    /// Every size of a payload buffer, by every length of a packet.
    #[test]
    fn every_packet_is_cut_into_as_many_pieces_as_hold_it() {
        let packet = vec![0; MAX_FRAME as usize];
        let mut registers = Registers::default();
        for kib in 0..=BSIZEPACKET {
            registers.set(srrctl(1), kib);
            for len in 0..=packet.len() {
                let Pieces { size, count, .. } = pieces((&packet[..len], 0), 1, &registers);
                let kib = if kib == 0 { 2 } else { kib };
                assert_eq!(size, kib as usize * 1024);
                assert!(count * size >= len && (count - 1) * size < len.max(1));
            }
        }
    }
}
