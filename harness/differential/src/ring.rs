// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rings as no driver may set them up: any lengths and indices, and descriptors of any kind.

use i82576::{
    limits::{DESCRIPTOR_SIZE, MAX_FRAME, MAX_PAYLEN, MAX_TSO_HEADER, MIN_TX_FRAME},
    regs::{self, rxdctl, tctl, txdctl},
    tx::{Context, Data, Raw},
};

use crate::{
    Hex, Result, Subject, place,
    receive::{self, LATER, Received, Settings},
    start,
    transmit::{self, QUEUE, Sent},
};

/// The bits that count of an index and a length.
const INDEX: u32 = 0xffff;
const LENGTH: u32 = 0xf_ff80;
/// The bits of a length below those, which count for one model.
const ODD: u32 = 0x70;
/// RS, in any descriptor.
const RS: u64 = 1 << 27;
/// What is compared of memory at once, in bytes.
const PAGE: usize = 4096;
/// Bytes that may be sent, from [`place::OUTGOING`] on.
pub const OUTGOING_BYTES: u64 = 0x2_0000;
/// Descriptors from the beginning of any ring for transmission that are written, if only with zeros.
pub const THERE: u32 = 256;
/// The receive queue that has the ring.
const RECEIVES: u16 = 0;

/// A ring, by what is written to its registers.
#[derive(Debug, Clone, Copy)]
pub struct Ring {
    /// RDLEN or TDLEN.
    pub len: u32,
    /// RDH or TDH.
    pub head: u32,
    /// RDT or TDT.
    pub tail: u32,
}

impl Ring {
    /// How many descriptors it has.
    #[must_use]
    pub fn size(&self) -> u32 {
        (self.len & LENGTH) / DESCRIPTOR_SIZE
    }

    /// Where it begins.
    #[must_use]
    pub fn head(&self) -> u32 {
        self.head & INDEX
    }

    pub(crate) fn tail(&self) -> u32 {
        self.tail & INDEX
    }

    /// Whether its tail is no index of its descriptors.
    #[must_use]
    pub fn ends_outside(&self) -> bool {
        self.tail() >= self.size()
    }

    /// Whether its head alone is none.
    #[must_use]
    pub fn begins_outside(&self) -> bool {
        self.head() >= self.size() && !self.ends_outside()
    }

    /// Whether it matters that its length is no multiple of eight descriptors.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.len & ODD != 0 && (self.head() > self.tail() || self.ends_outside())
    }

    fn next(&self, index: u32) -> u32 {
        if index + 1 < self.size() {
            index + 1
        } else {
            0
        }
    }
}

/// Descriptors that belong together: up to the end of a packet, or as far as they make sense.
#[derive(Debug, Clone)]
pub struct Chain {
    /// The ring, with the head before them and the tail behind them.
    pub ring: Ring,
    /// For each, whether a report of it is wanted, and it is one of the packet's.
    pub reports: Vec<[bool; 2]>,
    /// What becomes of them.
    pub fate: Fate,
}

/// What becomes of descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// A packet is sent as it is.
    Plain,
    /// They are a packet with offloads, or one that is too short, too long, or not as long as it says.
    Special,
    /// A packet is sent as it is, of which a descriptor has no bytes.
    Hollow,
    /// Nothing: there is no end of the packet.
    Unfinished,
    /// Nothing: the last of them makes no sense.
    Senseless,
}

impl Chain {
    /// The next of them in a ring with these descriptors.
    #[must_use]
    pub fn next(ring: &Ring, raws: &[Raw]) -> Self {
        let (mut at, mut packet) = (ring.head(), None);
        let mut this = Self {
            ring: *ring,
            reports: Vec::new(),
            fate: Fate::Unfinished,
        };
        if ring.begins_outside() || ring.ends_outside() {
            return this;
        }
        while at != ring.tail() {
            let raw = raws.get(at as usize).copied().unwrap_or([0; 2]);
            at = ring.next(at);
            if Context::decode(raw).is_some() {
                this.reports.push([raw[1] & RS != 0, false]);
                continue;
            }
            let data = Data::decode(raw);
            this.reports.push([raw[1] & RS != 0, data.is_some()]);
            let Some(data) = data else {
                this.fate = Fate::Senseless;
                return this;
            };
            let (first, bytes, is_hollow) = packet.get_or_insert((data, 0, false));
            *is_hollow |= data.len == 0;
            *bytes += u32::from(data.len);
            if *bytes > MAX_PAYLEN + u32::from(MAX_TSO_HEADER) {
                this.fate = Fate::Senseless;
                return this;
            }
            if data.end_of_packet {
                this.fate = match fate(first, *bytes) {
                    Fate::Plain if *is_hollow => Fate::Hollow,
                    fate => fate,
                };
                break;
            }
        }
        this.ring.tail = at;
        this
    }

    /// Whether they are a packet.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !matches!(self.fate, Fate::Unfinished | Fate::Senseless)
    }

    /// Where the head is behind them.
    #[must_use]
    pub fn end(&self) -> u32 {
        (0..self.reports.len()).fold(self.ring.head(), |at, _| self.ring.next(at))
    }
}

fn fate(first: &Data, bytes: u32) -> Fate {
    let has_offloads = first.tso || first.ip_checksum || first.l4_checksum || first.vlan;
    let is_right = first.paylen == bytes && (MIN_TX_FRAME..=MAX_FRAME).contains(&bytes);
    if is_right && !has_offloads {
        Fate::Plain
    } else {
        Fate::Special
    }
}

/// Resets the NIC and enables a queue on a ring with these descriptors, which has no tail yet.
///
/// # Errors
///
/// Those of [`start`].
pub fn set_up_transmit(subject: &mut dyn Subject, ring: &Ring, raws: &[Raw]) -> Result<()> {
    start(subject)?;
    let nothing = [[0; 2]; THERE as usize];
    put(subject, place::tx_ring(QUEUE), &nothing)?;
    put(subject, place::tx_ring(QUEUE), raws)?;
    // CAST: Any bits will do. No two bytes are an EtherType that is known.
    let bytes: Vec<u8> = (0..OUTGOING_BYTES)
        .map(|n| (n * 7 + n / 128) as u8 | 0x80)
        .collect();
    subject.write_memory(place::OUTGOING, &bytes)?;
    for (reg, value) in [
        (regs::tdbal(QUEUE), place::tx_ring(QUEUE) as u32),
        (regs::tdlen(QUEUE), ring.len),
        (regs::tdh(QUEUE), ring.head),
        // There is nothing to be sent when it is enabled.
        (regs::tdt(QUEUE), ring.head),
        (regs::txdctl(QUEUE), txdctl::ENABLE),
        (regs::TCTL, tctl::EN | tctl::PSP),
    ] {
        subject.write(reg, value)?;
    }
    for (_, reg) in transmit::COUNTERS {
        subject.read(reg)?;
    }
    Ok(())
}

/// Sends a chain.
///
/// # Errors
///
/// When the machine is gone.
pub fn transmit(subject: &mut dyn Subject, chain: &Chain) -> Result<Sent> {
    let ring = &chain.ring;
    let indices = std::iter::successors(Some(ring.head()), |at| Some(ring.next(*at)));
    let places: Vec<u64> = indices
        .take(chain.reports.len())
        .map(|at| place::tx_ring(QUEUE) + u64::from(at * DESCRIPTOR_SIZE))
        .collect();
    transmit::advance(subject, ring.tail, &places)
}

/// Resets the NIC, sets it up, and has its first queue have this ring.
///
/// # Errors
///
/// Those of [`start`].
pub fn set_up_receive(subject: &mut dyn Subject, settings: &Settings, ring: &Ring) -> Result<()> {
    receive::set_up(subject, settings)?;
    subject.write(regs::rxdctl(RECEIVES), 0)?;
    subject.elapse(LATER)?;
    for (reg, value) in [
        (regs::rdlen(RECEIVES), ring.len),
        (regs::rdh(RECEIVES), ring.head),
        (regs::rxdctl(RECEIVES), rxdctl::ENABLE),
        (regs::rdt(RECEIVES), ring.tail),
    ] {
        subject.write(reg, value)?;
    }
    Ok(())
}

/// Has a frame come.
///
/// # Errors
///
/// When the machine is gone.
pub fn receive(
    subject: &mut dyn Subject,
    frame: &[u8],
    heads: &mut [u32; place::QUEUES as usize],
    ring: &Ring,
) -> Result<Received> {
    let mut sizes = [u32::from(place::DESCRIPTORS); place::QUEUES as usize];
    sizes[usize::from(RECEIVES)] = ring.size();
    receive::receive_on(subject, frame, heads, &sizes)
}

/// What the registers of both rings say besides the heads: of a length without the bits that one model has.
///
/// # Errors
///
/// When the machine is gone.
pub fn registers(subject: &mut dyn Subject) -> Result<[u32; 4]> {
    Ok([
        subject.read(regs::rdlen(RECEIVES))?,
        subject.read(regs::rdt(RECEIVES))?,
        subject.read(regs::tdlen(QUEUE))?,
        subject.read(regs::tdt(QUEUE))?,
    ])
}

fn put(subject: &mut dyn Subject, at: u64, raws: &[Raw]) -> Result<()> {
    let halves = raws.iter().flatten();
    let bytes: Vec<u8> = halves.flat_map(|half| half.to_le_bytes()).collect();
    subject.write_memory(at, &bytes)
}

/// Memory that isn't what it was, in pages, but for rings and messages.
///
/// # Errors
///
/// When the machine is gone.
pub fn memory(subject: &mut dyn Subject) -> Result<Vec<(u64, Hex<Vec<u8>>)>> {
    let buffers = place::header(0, 0);
    // CAST: It is a small part of memory.
    let bytes = place::BYTES - (buffers - place::START) as usize;
    let found = subject.read_memory(buffers, bytes)?;
    let pages = (buffers..).step_by(PAGE).zip(found.chunks(PAGE));
    Ok(pages
        .filter(|(_, page)| page.iter().any(|byte| *byte != place::FILL))
        .map(|(address, page)| (address, Hex(page.to_vec())))
        .collect())
}
