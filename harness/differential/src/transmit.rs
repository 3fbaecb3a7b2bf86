// SPDX-License-Identifier: MIT OR Apache-2.0

//! Transmission: a packet is put on a ring, and its frames taken off the wire.

use i82576::{
    regs::{self, Reg, ctrl, tctl, txdctl},
    tx::{self, Context, Data, Raw},
};

use crate::{
    Hex, Result, Subject, place,
    receive::{messages, raw},
    start,
};

/// The counters that are compared; those of bytes are of two registers, which are read in this order.
pub const COUNTERS: [(&str, Reg); 6] = [
    ("GPTC", regs::GPTC),
    ("GOTCL", regs::GOTCL),
    ("GOTCH", regs::GOTCH),
    ("TPT", regs::TPT),
    ("BPTC", regs::BPTC),
    ("MPTC", regs::MPTC),
];
/// The queue that is used.
pub(crate) const QUEUE: u16 = 1;

/// A packet in memory, with what its descriptors say.
#[derive(Debug, Clone)]
pub struct Packet {
    /// Its bytes.
    pub bytes: Hex<Vec<u8>>,
    /// How many descriptors it has, at least one; some may be empty.
    pub parts: usize,
    /// What is to be done: address, length and the ends are filled in.
    pub data: Data,
    /// The context that comes before.
    pub context: Option<Context>,
}

impl Packet {
    /// Its descriptors.
    #[must_use]
    pub fn descriptors(&self) -> Vec<Raw> {
        let bytes = self.bytes.0.len();
        let size = bytes.div_ceil(self.parts.max(1)).max(1);
        let mut all: Vec<Raw> = self.context.iter().map(Context::encode).collect();
        for start in (0..bytes).step_by(size) {
            let len = size.min(bytes - start);
            let data = Data {
                address: place::OUTGOING + start as u64,
                // CAST: A packet has less than 64 KiB.
                len: len as u16,
                end_of_packet: start + len == bytes,
                report_status: start + len == bytes,
                ..self.data
            };
            all.push(data.encode());
        }
        all
    }
}

/// What has become of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The frames on the wire.
    pub frames: Vec<Hex<Vec<u8>>>,
    /// Which of its descriptors were reported done.
    pub done: Vec<bool>,
    /// TDH.
    pub head: u32,
    /// The [`COUNTERS`].
    pub counters: [u32; COUNTERS.len()],
    /// EICR.
    pub causes: u32,
    /// Bits of the vectors that sent messages.
    pub messages: u32,
}

/// Resets the NIC and enables a queue.
///
/// # Errors
///
/// Those of [`start`].
pub fn set_up(subject: &mut dyn Subject) -> Result<()> {
    start(subject)?;
    for (reg, value) in [
        (regs::CTRL, ctrl::SLU | ctrl::VME),
        (regs::tdbal(QUEUE), place::tx_ring(QUEUE) as u32),
        (regs::tdlen(QUEUE), place::RING as u32),
        (regs::txdctl(QUEUE), txdctl::ENABLE),
        (regs::TCTL, tctl::EN | tctl::PSP),
    ] {
        subject.write(reg, value)?;
    }
    for (_, reg) in COUNTERS {
        subject.read(reg)?;
    }
    Ok(())
}

/// Sends a packet.
///
/// # Errors
///
/// When the machine is gone.
pub fn transmit(subject: &mut dyn Subject, packet: &Packet) -> Result<Sent> {
    let head = subject.read(regs::tdh(QUEUE))?;
    let places: Vec<u64> = (head..)
        .map(|n| place::tx_ring(QUEUE) + u64::from(n % u32::from(place::DESCRIPTORS)) * 16)
        .zip(packet.descriptors())
        .map(|(address, raw)| {
            let bytes: Vec<u8> = raw.into_iter().flat_map(u64::to_le_bytes).collect();
            subject.write_memory(address, &bytes).map(|()| address)
        })
        .collect::<Result<_>>()?;
    subject.write_memory(place::OUTGOING, &packet.bytes.0)?;
    // CAST: They are few.
    let tail = (head + places.len() as u32) % u32::from(place::DESCRIPTORS);
    advance(subject, tail, &places)
}

/// Writes the tail, and sees what becomes of the descriptors in these places.
pub(crate) fn advance(subject: &mut dyn Subject, tail: u32, places: &[u64]) -> Result<Sent> {
    subject.write(regs::tdt(QUEUE), tail)?;
    let frames = subject.take()?.into_iter().map(Hex).collect();
    let mut counters = [0; COUNTERS.len()];
    for (value, (_, reg)) in counters.iter_mut().zip(COUNTERS) {
        *value = subject.read(reg)?;
    }
    let done = places
        .iter()
        .map(|address| raw(subject, *address).map(|[_, high]| tx::is_done(high)))
        .collect::<Result<_>>()?;
    Ok(Sent {
        frames,
        done,
        head: subject.read(regs::tdh(QUEUE))?,
        counters,
        causes: subject.read(regs::EICR)?,
        messages: messages(subject)?,
    })
}
