// SPDX-License-Identifier: MIT OR Apache-2.0

//! A transmit queue: descriptors are read up to the tail, gathered into packets and reported (82576
//! datasheet, chapter "Transmit Functionality").

use std::{collections::VecDeque, ops::Range};

use i82576::{
    limits::{MAX_PAYLEN, MAX_TSO_HEADER},
    regs::{tdbah, tdbal, tdh, tdlen, tdt, tdwbah, tdwbal},
    tx::{self, Context, Data},
};

use crate::{
    Host,
    lies::{Kind, Lies},
    nic::{registers::Registers, ring::Ring, violation::What},
};

/// The most bytes of a packet in memory.
const LONGEST: usize = MAX_PAYLEN as usize + MAX_TSO_HEADER as usize;
/// TDWBAL: head write-back is on.
const HEAD_WRITE_BACK: u32 = 1;

/// A packet that is whole.
#[derive(Debug)]
pub(crate) struct Packet {
    /// All its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Its first descriptor, whose offloads count.
    pub(crate) first: Data,
    /// The context that it names.
    pub(crate) context: Option<Context>,
}

/// A transmit queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    contexts: [Option<Context>; 2],
    /// The packet whose descriptors are being read.
    packet: Option<(Data, Vec<u8>)>,
    /// Descriptors of it that ask for a report.
    reports: Vec<u32>,
    /// Frames of a packet that is whole, which are still to be sent.
    frames: VecDeque<Vec<u8>>,
}

impl Queue {
    /// Forgets contexts and what is half read, as when the queue is enabled.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Reads descriptors up to the end of a packet. None if there is no whole packet, or nothing can
    /// be read: then the head stays where it is.
    ///
    /// # Errors
    ///
    /// A descriptor that no driver may write.
    pub(crate) fn next(
        &mut self,
        number: u16,
        registers: &mut Registers,
        host: &mut dyn Host,
    ) -> Result<Option<Packet>, What> {
        let ring = ring(number, registers);
        let mut head = registers.get(tdh(number));
        for _ in 0..ring.available(head, registers.get(tdt(number))) {
            let raw = ring.read(head, host)?;
            let index = head;
            head = ring.next(head);
            registers.set(tdh(number), head);
            if let Some(context) = Context::decode(raw) {
                // The device has two of them a queue.
                self.contexts[usize::from(context.queue_index & 1)] = Some(context);
                continue;
            }
            let data = Data::decode(raw).ok_or(What::Descriptor)?;
            if data.report_status {
                self.reports.push(index);
            }
            if let Some(packet) = self.gather(data, host)? {
                return Ok(Some(packet));
            }
        }
        Ok(None)
    }

    /// Whether anything is to be sent, or to be read.
    pub(crate) fn is_posted(&self, number: u16, registers: &Registers) -> bool {
        let (head, tail) = (registers.get(tdh(number)), registers.get(tdt(number)));
        self.is_sending() || ring(number, registers).available(head, tail) > 0
    }

    /// Takes the frames of a packet.
    pub(crate) fn send(&mut self, frames: Vec<Vec<u8>>) {
        self.frames = frames.into();
    }

    /// Whether there are frames of a packet that are still to be sent.
    pub(crate) fn is_sending(&self) -> bool {
        !self.frames.is_empty()
    }

    /// The next of them.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_front()
    }

    /// Reads the bytes of a descriptor. Returns the packet if that was its last.
    fn gather(&mut self, data: Data, host: &mut dyn Host) -> Result<Option<Packet>, What> {
        let (first, bytes) = self.packet.get_or_insert_with(|| (data, Vec::new()));
        let (start, len) = (bytes.len(), usize::from(data.len));
        if start + len > LONGEST {
            self.packet = None;
            return Err(What::TooLong);
        }
        bytes.resize(start + len, 0);
        if let Err(fault) = host.read(data.address, &mut bytes[start..]) {
            self.packet = None;
            return Err(fault.into());
        }
        if !data.end_of_packet {
            return Ok(None);
        }
        let context = self.contexts[usize::from(first.queue_index & 1)];
        let whole = self.packet.take();
        Ok(whole.map(|(first, bytes)| Packet {
            bytes,
            first,
            context,
        }))
    }

    /// Reports the descriptors that ask for it, once their packet was sent. Says whether there was one.
    pub(crate) fn report(
        &mut self,
        number: u16,
        registers: &Registers,
        lies: &mut Lies,
        host: &mut dyn Host,
    ) -> Result<bool, What> {
        let ring = ring(number, registers);
        let any = !self.reports.is_empty();
        if registers.has(tdwbal(number), HEAD_WRITE_BACK) {
            if !any {
                return Ok(false);
            }
            self.reports.clear();
            let address = head_write_back(number, registers);
            let head = match lies.tell(Kind::StrayReport) {
                // CAST: Any number will do.
                Some(value) => value as u32,
                None => registers.get(tdh(number)),
            };
            if !lies.tells(Kind::NoReport) {
                host.write(address, &head.to_le_bytes())?;
            }
            return Ok(true);
        }
        if let Some(value) = lies.tell(Kind::StrayReport) {
            let stray = ring.unposted(
                registers.get(tdh(number)),
                registers.get(tdt(number)),
                value,
            );
            self.reports.extend(stray);
        }
        for index in self.reports.drain(..) {
            if lies.tells(Kind::NoReport) {
                continue;
            }
            ring.write_high(index, tx::write_back(), host)?;
        }
        Ok(any)
    }
}

fn ring(number: u16, registers: &Registers) -> Ring {
    Ring::new(registers, tdbal(number), tdbah(number), tdlen(number))
}

/// Where a queue writes its head to, if it does.
fn head_write_back(number: u16, registers: &Registers) -> u64 {
    let low = registers.get(tdwbal(number)) & !3;
    u64::from(registers.get(tdwbah(number))) << 32 | u64::from(low)
}

/// What a queue writes to: its ring, and its head's place.
pub(super) fn writes_to(number: u16, registers: &Registers) -> Vec<Range<u64>> {
    let mut ranges = vec![ring(number, registers).range()];
    if registers.has(tdwbal(number), HEAD_WRITE_BACK) {
        let head = head_write_back(number, registers);
        ranges.push(head..head.saturating_add(4));
    }
    ranges
}
