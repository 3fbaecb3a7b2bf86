// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Receive side scaling: the Toeplitz hash, its key and the redirection table.
//!
//! Source: 82576 datasheet, chapter "Inline Functions", receive side scaling; the hash is that of
//! Microsoft's RSS specification ("RSS Hashing Functions").

use crate::{
    limits::MAX_RX_QUEUES,
    regs::mrqc, //
};

/// Bytes of the hash key.
pub const KEY_SIZE: usize = 40;

/// Entries of the redirection table.
pub const TABLE_SIZE: usize = 128;

/// The hash key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Key([u8; KEY_SIZE]);

impl Key {
    /// A key of these bytes, the first one the first that the hash uses.
    #[inline]
    pub const fn new(bytes: [u8; KEY_SIZE]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[inline]
    pub const fn bytes(&self) -> &[u8; KEY_SIZE] {
        &self.0
    }

    /// The values of [`rssrk`](crate::regs::rssrk)`(0..10)`.
    pub fn registers(&self) -> [u32; 10] {
        pack(&self.0)
    }
}

/// The redirection table: a receive queue for each value of the hash's low 7 bits.
// INVARIANT: all entries are below `MAX_RX_QUEUES`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct IndirectionTable([u8; TABLE_SIZE]);

impl IndirectionTable {
    /// A table of these entries; `None` if one is not a queue.
    pub fn new(entries: [u8; TABLE_SIZE]) -> Option<Self> {
        if entries.iter().all(|&queue| is_queue(queue)) {
            Some(Self(entries))
        } else {
            None
        }
    }

    /// Queues `0..queues` in turn, the kernel's default. `queues` is brought into `1..=16`.
    pub fn spread(queues: u16) -> Self {
        let queues = queues.clamp(1, MAX_RX_QUEUES);
        let mut table = [0; TABLE_SIZE];
        for (entry, queue) in table.iter_mut().zip((0..queues).cycle()) {
            // Below `MAX_RX_QUEUES`, so it fits.
            *entry = queue as u8;
        }
        Self(table)
    }

    /// The queue of entry `index`; `None` beyond the table.
    #[inline]
    pub fn get(&self, index: usize) -> Option<u8> {
        self.0.get(index).copied()
    }

    /// Sends entry `index` to `queue`. Returns `false`, with nothing changed, if there is no such
    /// entry or no such queue.
    #[must_use]
    pub fn set(&mut self, index: usize, queue: u8) -> bool {
        match self.0.get_mut(index) {
            Some(entry) if is_queue(queue) => {
                *entry = queue;
                true
            }
            _ => false,
        }
    }

    /// The entries.
    #[inline]
    pub const fn entries(&self) -> &[u8; TABLE_SIZE] {
        &self.0
    }

    /// The queue that a packet with this hash goes to. A packet without a hash goes to queue 0,
    /// regardless of the table.
    #[inline]
    pub fn queue(&self, hash: u32) -> u8 {
        // The mask keeps the index within the table.
        self.get(hash as usize & (TABLE_SIZE - 1)).unwrap_or(0)
    }

    /// The values of [`reta`](crate::regs::reta)`(0..32)`.
    pub fn registers(&self) -> [u32; 32] {
        pack(&self.0)
    }
}

/// A kind of packet that the device can hash in a way of its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Flow {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4.
    Udp4,
    /// UDP over IPv6.
    Udp6,
    /// What else IPv4 and IPv6 carry, and fragments.
    Other,
}

/// What of a packet is hashed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Hashed {
    /// Nothing: the packet has no hash and goes to queue 0.
    Nothing,
    /// Both addresses.
    Addresses,
    /// Both addresses and both ports.
    AddressesAndPorts,
}

/// What is hashed of each kind of packet. The device knows no other choices: addresses of all IP
/// packets or of none, and for four kinds of flows ports beside the addresses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HashFields {
    /// The addresses of all IP packets.
    pub addresses: bool,
    /// Addresses and ports of TCP over IPv4.
    pub tcp4: bool,
    /// Addresses and ports of TCP over IPv6.
    pub tcp6: bool,
    /// Addresses and ports of UDP over IPv4.
    pub udp4: bool,
    /// Addresses and ports of UDP over IPv6.
    pub udp6: bool,
}

impl HashFields {
    /// All that there is.
    pub const ALL: Self = Self {
        addresses: true,
        tcp4: true,
        tcp6: true,
        udp4: true,
        udp6: true,
    };

    /// TCP with its ports and nothing else: every other packet goes to queue 0.
    pub const TCP: Self = Self {
        addresses: false,
        tcp4: true,
        tcp6: true,
        udp4: false,
        udp6: false,
    };

    /// What is hashed of `flow`.
    pub const fn of(&self, flow: Flow) -> Hashed {
        let ports = match flow {
            Flow::Tcp4 => self.tcp4,
            Flow::Tcp6 => self.tcp6,
            Flow::Udp4 => self.udp4,
            Flow::Udp6 => self.udp6,
            Flow::Other => false,
        };
        match (ports, self.addresses) {
            (true, _) => Hashed::AddressesAndPorts,
            (false, true) => Hashed::Addresses,
            (false, false) => Hashed::Nothing,
        }
    }

    /// The same, with `hashed` for `flow`; `None` if the device cannot hash it so beside the
    /// others.
    pub const fn with(mut self, flow: Flow, hashed: Hashed) -> Option<Self> {
        let ports = matches!(hashed, Hashed::AddressesAndPorts);
        match flow {
            Flow::Tcp4 => self.tcp4 = ports,
            Flow::Tcp6 => self.tcp6 = ports,
            Flow::Udp4 => self.udp4 = ports,
            Flow::Udp6 => self.udp6 = ports,
            Flow::Other => {}
        }
        if self.of(flow) as u8 == hashed as u8 {
            Some(self)
        } else {
            None
        }
    }

    /// The value of [`MRQC`](crate::regs::MRQC) with RSS on.
    pub const fn mrqc(&self) -> u32 {
        let mut value = mrqc::ENABLE_RSS;
        if self.addresses {
            value |= mrqc::RSS_FIELD_IPV4 | mrqc::RSS_FIELD_IPV6 | mrqc::RSS_FIELD_IPV6_EX;
        }
        if self.tcp4 {
            value |= mrqc::RSS_FIELD_IPV4_TCP;
        }
        if self.tcp6 {
            value |= mrqc::RSS_FIELD_IPV6_TCP | mrqc::RSS_FIELD_IPV6_TCP_EX;
        }
        if self.udp4 {
            value |= mrqc::RSS_FIELD_IPV4_UDP;
        }
        if self.udp6 {
            value |= mrqc::RSS_FIELD_IPV6_UDP | mrqc::RSS_FIELD_IPV6_UDP_EX;
        }
        value
    }
}

#[inline]
fn is_queue(queue: u8) -> bool {
    u16::from(queue) < MAX_RX_QUEUES
}

/// `bytes` four to a register, the first in the lowest byte.
fn pack<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut registers = [0; N];
    for (register, chunk) in registers.iter_mut().zip(bytes.chunks_exact(4)) {
        *register = chunk
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u32::from(byte));
    }
    registers
}

/// The Toeplitz hash of `input`, at most 36 bytes of it: what lies beyond meets a key of zeroes
/// and has no effect from byte 40 on.
///
/// For each bit of the input that is set, from the first byte's highest on, the 32 bits of the
/// key that start at the bit's position are added without carry.
pub fn toeplitz(key: &Key, input: &[u8]) -> u32 {
    let mut key = key.0.iter().copied();
    let mut window = 0;
    for byte in key.by_ref().take(4) {
        window = window << 8 | u32::from(byte);
    }
    let mut hash = 0;
    for &byte in input {
        let next = key.next().unwrap_or(0);
        for bit in (0..8).rev() {
            if byte >> bit & 1 != 0 {
                hash ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    hash
}

/// Concatenates, in order, what fits.
fn concat<const N: usize>(parts: [&[u8]; 4]) -> [u8; N] {
    let mut joined = [0; N];
    for (to, from) in joined.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
    joined
}

/// The hash input of TCP or UDP over IPv4: addresses in network order, then `(source,
/// destination)` ports.
pub fn ipv4_tuple(source: [u8; 4], destination: [u8; 4], ports: (u16, u16)) -> [u8; 12] {
    concat([
        &source,
        &destination,
        &ports.0.to_be_bytes(),
        &ports.1.to_be_bytes(),
    ])
}

/// The hash input of IPv4 without ports: addresses in network order.
pub fn ipv4_pair(source: [u8; 4], destination: [u8; 4]) -> [u8; 8] {
    concat([&source, &destination, &[], &[]])
}

/// The hash input of TCP or UDP over IPv6: addresses in network order, then `(source,
/// destination)` ports.
pub fn ipv6_tuple(source: [u8; 16], destination: [u8; 16], ports: (u16, u16)) -> [u8; 36] {
    concat([
        &source,
        &destination,
        &ports.0.to_be_bytes(),
        &ports.1.to_be_bytes(),
    ])
}

/// The hash input of IPv6 without ports: addresses in network order.
pub fn ipv6_pair(source: [u8; 16], destination: [u8; 16]) -> [u8; 32] {
    concat([&source, &destination, &[], &[]])
}
