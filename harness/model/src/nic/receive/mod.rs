// SPDX-License-Identifier: MIT OR Apache-2.0

//! The way of a frame from the wire to memory.

mod admit;
mod damaged;
pub(super) mod fields;
mod flow_control;
mod packet;
mod queue;
mod split;
mod steer;
#[cfg(test)]
mod tests;
mod write_back;

use i82576::{
    limits::{MAX_RX_QUEUES, MAX_VECTORS},
    regs::{
        self, MPC, TSYNCRXCFG, TSYNCRXCTL, XOFFRXC, XONRXC, ivar_rx, rxdctl, srrctl, tsyncrxcfg,
        tsyncrxctl,
    },
};

pub(super) use self::{
    admit::is_for_us,
    packet::{IPV4, IPV6, Packet},
    queue::Queue,
};
use self::{
    admit::{admits, pause},
    steer::steer,
    write_back::{Received, write_back},
};
use super::{
    Kind, Nic, What,
    interrupts::Interrupts,
    lent::{Memory, Of},
    registers::Registers,
    statistics,
};
use crate::{Fault, Host};

/// TSYNCRXCTL: which messages; and those values that drivers here don't use.
const TYPE: u32 = 7 << 1;
const TYPE_L2_L4_V2: u32 = 2 << 1;
const TYPE_ALL: u32 = 4 << 1;
/// How long a queue takes to come to rest, in nanoseconds.
const REST: u64 = 20_000;
/// How long what is filled waits for more to be written back with, in nanoseconds.
const GATHER: u64 = 50_000;
/// How long a cable is out, in nanoseconds.
const FLAP: u64 = 1_000_000;

/// A frame in the packet buffer, which waits for a descriptor.
#[derive(Debug)]
pub(super) struct Waiting {
    frame: Vec<u8>,
    damaged: bool,
    lies: Option<Told>,
}

/// The lies about a frame before it has a place. They are told once, however often one is looked for.
#[derive(Debug, Clone, Copy)]
struct Told {
    lost: bool,
    queue: u16,
    unsplit: bool,
    corrupt: Option<u64>,
}

impl Nic {
    /// Receives a frame from the wire, without its frame check sequence. [`Self::elapse`] sends the interrupt,
    /// so that frames that come at once have one.
    pub fn receive(&mut self, frame: &[u8], host: &mut dyn Host) {
        if self.link_is_up() && !self.loops_back() {
            self.receive_frame(frame, host);
        }
        self.lie_by_the_way(host);
    }

    /// Enables a queue, or disables it: it says so once it has come to rest.
    pub(super) fn control_receive(&mut self, queue: u16, value: u32) {
        let (reg, at) = (regs::rxdctl(queue), usize::from(queue));
        let was_enabled = self.registers.has(reg, rxdctl::ENABLE);
        self.registers.set(reg, value & !rxdctl::SWFLSH);
        match (was_enabled, value & rxdctl::ENABLE != 0) {
            (false, true) => self.enable_receive(queue),
            (true, false) => {
                self.registers.modify(reg, 0, rxdctl::ENABLE);
                self.rx_rests[at] = Some(self.now + REST);
            }
            // Enabled anew, whatever it was about to come to rest from.
            (true, true) if self.rx_rests[at].take().is_some() => self.enable_receive(queue),
            (true, true) => {}
            (false, false) => {}
        }
        if value & rxdctl::SWFLSH != 0 {
            self.write_back = Some(self.now);
        }
    }

    fn enable_receive(&mut self, queue: u16) {
        self.rx[usize::from(queue)].start(queue, &self.registers);
        let ring = queue::ring(queue, &self.registers).range();
        self.lent.enable(Of::Receive(queue), [ring]);
    }

    /// Whether a queue takes packets.
    pub(super) fn receives(&self, queue: u16) -> bool {
        self.registers.has(regs::rxdctl(queue), rxdctl::ENABLE)
            && self.rx_rests[usize::from(queue)].is_none()
    }

    /// The driver has posted buffers: what waits for them comes first.
    pub(super) fn buffers_posted(&mut self, queue: u16, host: &mut dyn Host) {
        if self.is_master() && self.receives(queue) {
            self.prefetch(queue, host);
        }
        while let Some(mut waiting) = self.waiting.pop_front() {
            if !self.place(&waiting.frame, waiting.damaged, &mut waiting.lies, host) {
                self.waiting.push_front(waiting);
                break;
            }
        }
        self.control_flow(host);
    }

    /// Receives a frame, or keeps it in the packet buffer until there is a descriptor.
    pub(super) fn receive_frame(&mut self, frame: &[u8], host: &mut dyn Host) {
        if self.is_master() && self.admits(frame) {
            self.store(frame, false, host);
        }
    }

    fn store(&mut self, frame: &[u8], damaged: bool, host: &mut dyn Host) {
        let mut lies = None;
        if self.waiting.is_empty() && self.place(frame, damaged, &mut lies, host) {
            return;
        }
        let size = (self.registers.get(regs::RXPBS) & 0x7f) as usize * 1024;
        if self.waiting_bytes() + frame.len() <= size {
            let frame = frame.to_vec();
            self.waiting.push_back(Waiting {
                frame,
                damaged,
                lies,
            });
            self.control_flow(host);
        } else {
            statistics::count(&mut self.registers, MPC, 1);
        }
    }

    /// Bytes of the packet buffer that are in use.
    fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.frame.len()).sum()
    }

    /// Whether a frame is let in. Takes notice of a pause, and counts what is refused.
    fn admits(&mut self, frame: &[u8]) -> bool {
        let packet = Packet::parse(frame, &self.registers);
        if let Some(time) = pause(&packet, frame, &self.registers) {
            self.pause(time);
        }
        let Err(refusal) = admits(&packet, frame, &self.registers) else {
            return true;
        };
        for counter in refusal.counters() {
            statistics::count(&mut self.registers, *counter, 1);
        }
        false
    }

    /// Puts a frame that is let in where it belongs, or drops it. False if it must wait for a descriptor: `lies`
    /// keeps what is told of it then.
    fn place(
        &mut self,
        frame: &[u8],
        damaged: bool,
        lies: &mut Option<Told>,
        host: &mut dyn Host,
    ) -> bool {
        let packet = Packet::parse(frame, &self.registers);
        let destination = steer(&packet, &self.registers);
        let right = u16::from(destination.queue) % MAX_RX_QUEUES;
        if !self.receives(right) {
            return true;
        }
        let (mut bytes, vlan) = packet.strip(frame, &self.registers);
        let lies = *lies.get_or_insert_with(|| {
            let queue = self.lies.tell(Kind::Queue);
            let queue = queue.map_or(right, |value| self.another(right, value));
            let header = split::header_len(&packet, queue, &self.registers);
            Told {
                lost: self.lies.tells(Kind::Lost),
                queue,
                unsplit: header.is_some() && self.lies.tells(Kind::Unsplit),
                corrupt: self.lies.tell(Kind::Corrupt),
            }
        });
        let queue = lies.queue;
        if lies.lost || !self.receives(queue) {
            return true;
        }
        let header = split::header_len(&packet, queue, &self.registers);
        let header = header.filter(|_| !lies.unsplit);
        let control = self.registers.get(regs::srrctl(queue));
        let layout = split::layout(header, bytes.len(), control);
        if let Some(value) = lies.corrupt {
            corrupt(bytes.to_mut(), layout.header, value);
        }
        let pieces = (&*bytes, layout.header);
        let (registers, rx) = (&self.registers, &mut self.rx[usize::from(queue)]);
        let lent = &mut self.lent;
        match rx.has_room(pieces, queue, registers, &mut Memory { host, lent }) {
            Ok(true) => {}
            Ok(false) => return self.drops(queue),
            Err(what) => {
                self.note(queue, Err(what));
                return true;
            }
        }
        let message = frame.get(packet.payload..).unwrap_or_default();
        let received = Received {
            packet: &packet,
            bytes: &bytes,
            destination: &destination,
            layout,
            vlan,
            damaged,
            timestamp: destination.timestamp
                && is_timestamped(message, &self.registers)
                && self.clock.timestamp_received(&mut self.registers, self.now),
        };
        let (registers, rx) = (&self.registers, &mut self.rx[usize::from(queue)]);
        let describe = |piece| write_back(&received, piece, registers);
        let lent = &mut self.lent;
        let filled = if self.lies.tells(Kind::NoData) {
            let host = &mut Unwritten(host);
            rx.fill(
                pieces,
                queue,
                registers,
                &mut Memory { host, lent },
                describe,
            )
        } else {
            rx.fill(
                pieces,
                queue,
                registers,
                &mut Memory { host, lent },
                describe,
            )
        };
        if filled.is_ok() {
            if !damaged {
                statistics::received(&mut self.registers, frame);
            }
            self.filled(queue, host);
        }
        self.note(queue, filled);
        true
    }

    /// A queue that receives, by `value`: another one than this if there is any.
    fn another(&self, queue: u16, value: u64) -> u16 {
        let others = (0..MAX_RX_QUEUES).filter(|other| *other != queue && self.receives(*other));
        let others: Vec<_> = others.collect();
        // CAST: It is less than there are.
        let nth = value.checked_rem(others.len() as u64);
        nth.map_or(queue, |nth| others[nth as usize])
    }

    /// The other side wants silence, for so many times 512 bits.
    fn pause(&mut self, time: u16) {
        let counter = if time == 0 { XONRXC } else { XOFFRXC };
        statistics::count(&mut self.registers, counter, 1);
        // At 1000 Mb/s, a bit takes a nanosecond.
        self.paused = Some(self.now + u64::from(time) * 512);
    }

    /// Writes back what is filled, of all queues.
    pub(super) fn write_back_all(&mut self, host: &mut dyn Host) {
        self.write_back = None;
        for queue in 0..MAX_RX_QUEUES {
            self.write_back(queue, host);
        }
    }

    /// Writes back what is filled, and interrupts.
    pub(super) fn write_back(&mut self, queue: u16, host: &mut dyn Host) {
        let at = usize::from(queue);
        if self.rx[at].has_done() {
            let (registers, lies, lent) = (&mut self.registers, &mut self.lies, &mut self.lent);
            let memory = &mut Memory { host, lent };
            let written = self.rx[at].write_back(queue, registers, lies, memory);
            self.note(queue, written);
            Interrupts::raise_queue(&mut self.registers, ivar_rx(queue));
        }
    }

    /// Has what was filled be written back, now or with more.
    fn filled(&mut self, queue: u16, host: &mut dyn Host) {
        let at = usize::from(queue);
        if self.rx[at].is_due(queue, &self.registers) {
            self.write_back(queue, host);
        } else {
            self.write_back.get_or_insert(self.now + GATHER);
        }
        if self.receives(queue) {
            self.prefetch(queue, host);
        }
    }

    fn prefetch(&mut self, queue: u16, host: &mut dyn Host) {
        let (rx, lent) = (&mut self.rx[usize::from(queue)], &mut self.lent);
        let fetched = rx.prefetch(queue, &self.registers, &mut Memory { host, lent });
        self.note(queue, fetched);
    }

    /// Tells lies that are about no packet. They come with one.
    fn lie_by_the_way(&mut self, host: &mut dyn Host) {
        if let Some(value) = self.lies.tell(Kind::SpuriousInterrupt) {
            // CAST: It is small.
            host.interrupt((value % u64::from(MAX_VECTORS)) as u16);
        }
        if let Some(value) = self.lies.tell(Kind::SpuriousCause) {
            // CAST: Any bits will do.
            Interrupts::raise(&mut self.registers, value as u32);
        }
        if self.lies.tells(Kind::LinkFlap) {
            self.replug = Some(self.now + FLAP);
            self.plug(false, host);
        }
    }

    /// A packet found no descriptor: says whether it is dropped, and counts it.
    fn drops(&mut self, queue: u16) -> bool {
        let drops = self.registers.has(regs::srrctl(queue), srrctl::DROP_EN);
        if drops {
            statistics::count(&mut self.registers, regs::rqdpc(queue), 1);
        }
        drops
    }

    fn note(&mut self, queue: u16, done: Result<(), What>) {
        if let Err(what) = done {
            self.violated(what, Of::Receive(queue));
        }
    }
}

/// Memory that is not written.
struct Unwritten<'a>(&'a mut dyn Host);

impl Host for Unwritten<'_> {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.0.read(address, bytes)
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), Fault> {
        Ok(())
    }

    fn interrupt(&mut self, vector: u16) {
        self.0.interrupt(vector);
    }

    fn send(&mut self, frame: Vec<u8>) {
        self.0.send(frame);
    }
}

/// Flips a bit of the payload, if there is any.
fn corrupt(bytes: &mut [u8], header: usize, value: u64) {
    let payload = bytes.get_mut(header..).unwrap_or_default();
    let count = payload.len() as u64;
    if let Some(at) = value.checked_rem(count) {
        // CAST: It is less than the payload has.
        payload[at as usize] ^= 1;
    }
}

/// Whether messages like this one are timestamped, by TSYNCRXCTL.Type: of PTP version 2 over Ethernet (82576
/// datasheet, chapter "Time SYNC Rx Configuration"). Messages over UDP are not looked for.
fn is_timestamped(message: &[u8], registers: &Registers) -> bool {
    let Some(kind) = message.first() else {
        return false;
    };
    match registers.get(TSYNCRXCTL) & TYPE {
        tsyncrxctl::TYPE_L2_V2 | TYPE_L2_L4_V2 => {
            u32::from(*kind) == registers.get(TSYNCRXCFG) >> tsyncrxcfg::MESSAGE_V2_SHIFT & 0xff
        }
        // Types up to 7 are event messages (IEEE 1588, table 19).
        tsyncrxctl::TYPE_EVENT_V2 => kind & 0xf < 8,
        TYPE_ALL => true,
        _ => false,
    }
}
