// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Five-tuple filters: eight comparisons with protocol, addresses and ports of a packet. One that
//! matches sends the packet to its queue, regardless of RSS.
//!
//! Each field is compared as a whole or not at all, addresses are those of IPv4, and no filter
//! drops a packet. A filter without an address matches IPv6, too: the PTP filter of the kernel's
//! `igb`, which is for messages over both, is one.
//!
//! QEMU's model has no filters, and its registers keep nothing: see [`exist`].
//!
//! Sources: 82576 datasheet, chapter "Programming Interface" (receive registers); byte order and
//! the use of IMIR and IMIREXT as in the PTP filter of the kernel's `igb` (`igb_ptp.c`), which
//! compares UDP and both ports; bit 8 of FTQF, the queue, and the addresses' byte order as in
//! DPDK's `igb_ethdev.c`.

mod rule;
mod table;

pub use self::rule::{
    Action,
    Addresses,
    Masked,
    Refusal,
    Rule, //
};
pub use self::table::{
    Place,
    Table, //
};

use crate::{
    limits::FIVE_TUPLE_FILTERS,
    regs::{
        self,
        ftqf,
        imir,
        imirext,
        Reg, //
    },
};

/// A protocol with ports, and its number in an IP header.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Protocol {
    /// TCP.
    Tcp = 6,
    /// UDP.
    Udp = 17,
    /// SCTP.
    Sctp = 132,
}

impl Protocol {
    const fn from_number(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            132 => Some(Self::Sctp),
            _ => None,
        }
    }
}

/// A filter. What is `None` is not compared.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// The protocol.
    pub protocol: Protocol,
    /// The source address.
    pub source: Option<[u8; 4]>,
    /// The destination address.
    pub destination: Option<[u8; 4]>,
    /// The source port.
    pub source_port: Option<u16>,
    /// The destination port.
    pub destination_port: Option<u16>,
    /// The receive queue of what matches: its low four bits count.
    pub queue: u8,
}

impl Filter {
    /// The values of the registers for the filter at place `n`: of filters that match the same
    /// packet, the one at the lowest place counts.
    pub const fn registers(&self, n: u16) -> Registers {
        let (source, source_bp) = field(address(self.source), ftqf::SOURCE_BP);
        let (destination, destination_bp) = field(address(self.destination), ftqf::DESTINATION_BP);
        let (source_port, source_port_bp) = field(port(self.source_port), ftqf::SOURCE_PORT_BP);
        let (destination_port, port_bp) = field(port(self.destination_port), imir::PORT_BP);

        Registers {
            ftqf: self.protocol as u32
                | ftqf::QUEUE_ENABLE
                | ftqf::VF_BP
                | (self.queue as u32) << ftqf::QUEUE_SHIFT & ftqf::QUEUE_MASK
                | source_bp
                | destination_bp
                | source_port_bp,
            saqf: source,
            daqf: destination,
            spqf: source_port,
            imir: destination_port | port_bp | priority(n) << imir::PRIORITY_SHIFT,
            imirext: imirext::SIZE_BP | imirext::CONTROL_BP,
        }
    }
}

/// A field's value, and the bit that bypasses it if it is not compared.
const fn field(value: Option<u32>, bypass: u32) -> (u32, u32) {
    match value {
        Some(value) => (value, 0),
        None => (0, bypass),
    }
}

const fn address(address: Option<[u8; 4]>) -> Option<u32> {
    match address {
        Some(bytes) => Some(u32::from_le_bytes(bytes)),
        None => None,
    }
}

const fn port(port: Option<u16>) -> Option<u32> {
    match port {
        Some(port) => Some(port.swap_bytes() as u32),
        None => None,
    }
}

/// The lower the place, the higher the priority. The last two share the lowest one that DPDK uses,
/// 1, and the device takes the first of these.
const fn priority(n: u16) -> u32 {
    let priority = imir::PRIORITY_MAX.saturating_sub(n as u32);
    if priority == 0 {
        1
    } else {
        priority
    }
}

/// The values of one filter's registers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Registers {
    /// [`ftqf`](regs::ftqf()).
    pub ftqf: u32,
    /// [`saqf`](regs::saqf).
    pub saqf: u32,
    /// [`daqf`](regs::daqf).
    pub daqf: u32,
    /// [`spqf`](regs::spqf).
    pub spqf: u32,
    /// [`imir`](regs::imir()).
    pub imir: u32,
    /// [`imirext`](regs::imirext()).
    pub imirext: u32,
}

impl Registers {
    /// No filter.
    pub const OFF: Self = Self {
        ftqf: ftqf::VF_BP
            | ftqf::PROTOCOL_BP
            | ftqf::SOURCE_BP
            | ftqf::DESTINATION_BP
            | ftqf::SOURCE_PORT_BP,
        saqf: 0,
        daqf: 0,
        spqf: 0,
        imir: imir::PORT_BP,
        imirext: imirext::SIZE_BP | imirext::CONTROL_BP,
    };

    /// The bits that a filter is made of.
    const USED: Self = Self {
        ftqf: ftqf::PROTOCOL_MASK
            | ftqf::QUEUE_ENABLE
            | ftqf::VF_BP
            | ftqf::QUEUE_MASK
            | ftqf::PROTOCOL_BP
            | ftqf::SOURCE_BP
            | ftqf::DESTINATION_BP
            | ftqf::SOURCE_PORT_BP,
        saqf: u32::MAX,
        daqf: u32::MAX,
        spqf: 0xffff,
        imir: imir::PORT_MASK | imir::PORT_BP | imir::PRIORITY_MAX << imir::PRIORITY_SHIFT,
        imirext: imirext::SIZE_BP | imirext::CONTROL_BP,
    };

    /// What to write for the filter at place `n`, in this order: it is off while it changes.
    pub const fn writes(&self, n: u16) -> [(Reg, u32); 7] {
        [
            (regs::ftqf(n), Self::OFF.ftqf),
            (regs::saqf(n), self.saqf),
            (regs::daqf(n), self.daqf),
            (regs::spqf(n), self.spqf),
            (regs::imir(n), self.imir),
            (regs::imirext(n), self.imirext),
            (regs::ftqf(n), self.ftqf),
        ]
    }

    /// The registers of the filter at place `n`, as `read` reads them.
    pub fn read(n: u16, mut read: impl FnMut(Reg) -> u32) -> Self {
        Self {
            ftqf: read(regs::ftqf(n)),
            saqf: read(regs::saqf(n)),
            daqf: read(regs::daqf(n)),
            spqf: read(regs::spqf(n)),
            imir: read(regs::imir(n)),
            imirext: read(regs::imirext(n)),
        }
    }

    /// The filter that the values encode; `None` if it is off, or cannot be expressed as a [`Filter`].
    pub fn filter(&self) -> Option<Filter> {
        let Self { ftqf, imir, .. } = *self;
        let compared = |value, bypass| (ftqf & bypass == 0).then_some(value);
        let other = ftqf::PROTOCOL_BP | !Self::USED.ftqf;
        if ftqf & (ftqf::QUEUE_ENABLE | ftqf::VF_BP | other) != ftqf::QUEUE_ENABLE | ftqf::VF_BP
            || self.imirext != Self::OFF.imirext
        {
            return None;
        }

        // CAST: The fields have as many bits as the types.
        Some(Filter {
            protocol: Protocol::from_number((ftqf & ftqf::PROTOCOL_MASK) as u8)?,
            source: compared(self.saqf.to_le_bytes(), ftqf::SOURCE_BP),
            destination: compared(self.daqf.to_le_bytes(), ftqf::DESTINATION_BP),
            source_port: (ftqf & ftqf::SOURCE_PORT_BP == 0)
                .then_some((self.spqf as u16).swap_bytes()),
            destination_port: (imir & imir::PORT_BP == 0).then_some((imir as u16).swap_bytes()),
            queue: ((ftqf & ftqf::QUEUE_MASK) >> ftqf::QUEUE_SHIFT) as u8,
        })
    }

    fn map(&self, other: &Self, f: impl Fn(u32, u32) -> u32) -> Self {
        Self {
            ftqf: f(self.ftqf, other.ftqf),
            saqf: f(self.saqf, other.saqf),
            daqf: f(self.daqf, other.daqf),
            spqf: f(self.spqf, other.spqf),
            imir: f(self.imir, other.imir),
            imirext: f(self.imirext, other.imirext),
        }
    }

    /// Values that differ from register to register, as far as their bits go, and that send no
    /// packet to a queue.
    fn pattern(n: u16, inverted: bool) -> Self {
        let word = |register: u32| {
            let word = (u32::from(n) * 8 + register + 1).wrapping_mul(0x9e37_79b9);
            if inverted {
                !word
            } else {
                word
            }
        };
        let words = Self {
            ftqf: word(0) & !ftqf::QUEUE_ENABLE,
            saqf: word(1),
            daqf: word(2),
            spqf: word(3),
            imir: word(4),
            imirext: word(5),
        };

        words.map(&Self::USED, |value, used| value & used)
    }
}

/// Whether the device has the filters: all of their registers keep what is written to them. On
/// return all filters are off.
///
/// It writes and reads registers by `write` and `read`, while nothing is received.
pub fn exist(mut write: impl FnMut(Reg, u32), mut read: impl FnMut(Reg) -> u32) -> bool {
    let mut exist = true;

    for inverted in [false, true] {
        for n in 0..FIVE_TUPLE_FILTERS {
            for (reg, value) in Registers::pattern(n, inverted).writes(n) {
                write(reg, value);
            }
        }
        for n in 0..FIVE_TUPLE_FILTERS {
            let kept =
                Registers::read(n, &mut read).map(&Registers::USED, |value, used| value & used);

            exist &= kept == Registers::pattern(n, inverted);
        }
    }
    for n in 0..FIVE_TUPLE_FILTERS {
        for (reg, value) in Registers::OFF.writes(n) {
            write(reg, value);
        }
    }
    exist
}
