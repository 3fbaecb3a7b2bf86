// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reception: registers are set, buffers posted, and a frame after the other comes.

use std::fmt;

use i82576::regs::{self, Reg, ctrl, rctl, rxdctl};

use crate::{Hex, Result, Subject, place, start};

/// The counters that are compared.
///
/// Those of bytes are of two registers, which are read in this order.
pub const COUNTERS: [(&str, Reg); 11] = [
    ("GPRC", regs::GPRC),
    ("GORCL", regs::GORCL),
    ("GORCH", regs::GORCH),
    ("BPRC", regs::BPRC),
    ("MPRC", regs::MPRC),
    ("TPR", regs::TPR),
    ("MPC", regs::MPC),
    ("ROC", regs::ROC),
    ("RUC", regs::RUC),
    ("RLEC", regs::RLEC),
    ("LENERRS", regs::LENERRS),
];

/// A millisecond: more than any queue waits with what it has to write.
pub(crate) const LATER: u64 = 1_000_000;

/// How many descriptors the rings have.
const SIZES: [u32; place::QUEUES as usize] = [place::DESCRIPTORS as u32; place::QUEUES as usize];

/// How reception is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// CTRL, besides SLU.
    pub ctrl: u32,
    /// RCTL, besides EN.
    pub rctl: u32,
    /// RLPML.
    pub rlpml: u32,
    /// RXCSUM.
    pub rxcsum: u32,
    /// RFCTL.
    pub rfctl: u32,
    /// MRQC.
    pub mrqc: u32,
    /// The key of RSS, as its registers.
    pub key: [u32; 10],
    /// The redirection table, as its registers.
    pub reta: [u32; 32],
    /// The first register of the table of VLANs.
    pub vlans: u32,
    /// PSRTYPE of each queue.
    pub psrtype: [u32; place::QUEUES as usize],
    /// SRRCTL of each queue.
    pub srrctl: [u32; place::QUEUES as usize],
    /// How many buffers each queue has.
    pub buffers: [u16; place::QUEUES as usize],
}

/// A descriptor that was written back, with its buffers.
#[derive(Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// What was written back.
    pub raw: [u64; 2],
    /// The header buffer, up to the last byte that isn't [`place::FILL`].
    pub header: Vec<u8>,
    /// The payload buffer, likewise.
    pub payload: Vec<u8>,
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = self.raw;
        let (header, payload) = (Hex(&self.header), Hex(&self.payload));
        write!(f, "{low:016x} {high:016x} {header:?} {payload:?}")
    }
}

/// What one frame has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The descriptors that were written back, with their queues.
    pub descriptors: Vec<(u16, Descriptor)>,
    /// How far RDH of each queue has gone.
    pub used: [u32; place::QUEUES as usize],
    /// The [`COUNTERS`], which are cleared by that.
    pub counters: [u32; COUNTERS.len()],
    /// RQDPC of each queue.
    pub dropped: [u32; place::QUEUES as usize],
    /// EICR.
    pub causes: u32,
    /// Bits of the vectors that sent messages.
    pub messages: u32,
}

impl Received {
    /// How many bytes each buffer has.
    #[must_use]
    pub fn layout(&self) -> Vec<[usize; 2]> {
        let all = self.descriptors.iter();
        all.map(|(_, part)| [part.header.len(), part.payload.len()])
            .collect()
    }
}

/// Resets the NIC, sets it up and posts buffers.
///
/// # Errors
///
/// Those of [`start`].
pub fn set_up(subject: &mut dyn Subject, settings: &Settings) -> Result<()> {
    start(subject)?;
    let mut writes = vec![
        (regs::CTRL, ctrl::SLU | settings.ctrl),
        (regs::RLPML, settings.rlpml),
        (regs::RXCSUM, settings.rxcsum),
        (regs::RFCTL, settings.rfctl),
        (regs::MRQC, settings.mrqc),
        (regs::vfta(0), settings.vlans),
    ];
    writes.extend((0..).map(regs::rssrk).zip(settings.key));
    writes.extend((0..).map(regs::reta).zip(settings.reta));
    for queue in 0..place::QUEUES {
        let at = usize::from(queue);
        writes.extend([
            (regs::psrtype(queue), settings.psrtype[at]),
            (regs::srrctl(queue), settings.srrctl[at]),
            (regs::rdbal(queue), place::rx_ring(queue) as u32),
            (regs::rdlen(queue), place::RING as u32),
            (
                regs::rxdctl(queue),
                rxdctl::ENABLE | regs::thresholds(8, 8, 1),
            ),
        ]);
        let buffers = |n| [place::payload(queue, n), place::header(queue, n)];
        let ring = (0..place::DESCRIPTORS).flat_map(buffers);
        let bytes: Vec<u8> = ring.flat_map(u64::to_le_bytes).collect();
        subject.write_memory(place::rx_ring(queue), &bytes)?;
    }
    writes.push((regs::RCTL, rctl::EN | settings.rctl));
    for (reg, value) in writes {
        subject.write(reg, value)?;
    }
    for queue in 0..place::QUEUES {
        let buffers = settings.buffers[usize::from(queue)];
        subject.write(regs::rdt(queue), buffers.into())?;
    }
    see(subject, &mut [0; place::QUEUES as usize], &SIZES).map(drop)
}

/// Has a frame come; `heads` is how far the queues were before it.
///
/// # Errors
///
/// When the machine is gone.
pub fn receive(
    subject: &mut dyn Subject,
    frame: &[u8],
    heads: &mut [u32; place::QUEUES as usize],
) -> Result<Received> {
    receive_on(subject, frame, heads, &SIZES)
}

/// As [`receive`], on rings with so many descriptors.
pub(crate) fn receive_on(
    subject: &mut dyn Subject,
    frame: &[u8],
    heads: &mut [u32; place::QUEUES as usize],
    sizes: &[u32; place::QUEUES as usize],
) -> Result<Received> {
    subject.send(frame)?;
    subject.elapse(LATER)?;
    see(subject, heads, sizes)
}

fn see(
    subject: &mut dyn Subject,
    heads: &mut [u32; place::QUEUES as usize],
    sizes: &[u32; place::QUEUES as usize],
) -> Result<Received> {
    let mut seen = Received {
        descriptors: Vec::new(),
        used: [0; place::QUEUES as usize],
        counters: [0; COUNTERS.len()],
        dropped: [0; place::QUEUES as usize],
        causes: subject.read(regs::EICR)?,
        messages: 0,
    };
    for (value, (_, reg)) in seen.counters.iter_mut().zip(COUNTERS) {
        *value = subject.read(reg)?;
    }
    for queue in 0..place::QUEUES {
        let at = usize::from(queue);
        seen.dropped[at] = subject.read(regs::rqdpc(queue))?;
        let head = subject.read(regs::rdh(queue))?;
        while heads[at] != head && heads[at] < sizes[at] && seen.used[at] < sizes[at] {
            // CAST: An index has 16 bits.
            let described = descriptor(subject, queue, heads[at] as u16)?;
            seen.descriptors.push((queue, described));
            seen.used[at] += 1;
            heads[at] = (heads[at] + 1) % sizes[at];
        }
        heads[at] = head;
    }
    seen.messages = messages(subject)?;
    Ok(seen)
}

/// Which vectors have sent a message since this was last asked.
pub(crate) fn messages(subject: &mut dyn Subject) -> Result<u32> {
    let vectors = 2 * place::QUEUES;
    let bytes = 4 * usize::from(vectors);
    let written = subject.read_memory(place::message(0), bytes)?;
    subject.write_memory(place::message(0), &vec![place::FILL; bytes])?;
    let sent = (0..)
        .zip(written.chunks(4))
        .filter(|(_, chunk)| *chunk != [place::FILL; 4]);
    Ok(sent.fold(0, |bits, (vector, _)| bits | 1 << vector))
}

fn descriptor(subject: &mut dyn Subject, queue: u16, n: u16) -> Result<Descriptor> {
    let at = place::rx_ring(queue) + u64::from(n) * 16;
    let mut buffer = |address, bytes| {
        let mut found: Vec<u8> = subject.read_memory(address, bytes)?;
        let filled = found.iter().rposition(|byte| *byte != place::FILL);
        found.truncate(filled.map_or(0, |last| last + 1));
        Ok(found)
    };
    let header = buffer(place::header(queue, n), place::HEADER_STRIDE as usize)?;
    let payload = buffer(place::payload(queue, n), place::PAYLOAD_STRIDE as usize)?;
    let raw = raw(subject, at)?;
    Ok(Descriptor {
        raw,
        header,
        payload,
    })
}

/// A descriptor's halves.
pub(crate) fn raw(subject: &mut dyn Subject, address: u64) -> Result<[u64; 2]> {
    let bytes = subject.read_memory(address, 16)?;
    let whole = bytes
        .iter()
        .rev()
        .fold(0u128, |value, byte| value << 8 | u128::from(*byte));
    Ok([whole as u64, (whole >> 64) as u64])
}
