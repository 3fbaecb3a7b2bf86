// SPDX-License-Identifier: MIT OR Apache-2.0

//! The model under a driver that does anything: it writes any register and any descriptor at any time, while
//! any frame arrives.

use i82576::{
    regs::{self, Reg, ctrl, mdic, mrqc, phy, rctl, rxcsum, rxdctl, srrctl, tctl, txdctl},
    rx,
    tx::{Context, Data, IpVersion, L4},
};
use model::nic::{Nic, Plan};

use crate::{
    bus::{BASE, Bus},
    input::Input,
};

const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
/// Where the rings of a port are that is set up, of 8 descriptors each, and its buffers.
const RX_RING: u64 = BASE;
const TX_RING: u64 = BASE + 0x100;
const BUFFERS: u64 = BASE + 0x400;
const MEMORY: usize = 0x4000;
/// What a single call may access: the rings of all queues are read, and loopback has each packet of
/// 512 pieces received again.
const ACCESSES: usize = 200_000;

struct Port {
    nic: Nic,
    bus: Bus,
    now: u64,
}

/// Does anything to a device.
pub fn device(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut port = Port {
        nic: Nic::new(MAC),
        bus: Bus::new(MEMORY),
        now: 0,
    };
    if input.any::<u8>() < 0xf0 {
        port.set_up();
    }
    for _ in 0..64 {
        if input.is_empty() {
            break;
        }
        port.act(&mut input);
        assert!(port.bus.accesses < ACCESSES, "{}", port.bus.accesses);
        port.bus.accesses = 0;
    }
    let _ = port.nic.violations();
}

impl Port {
    fn write(&mut self, reg: Reg, value: u32) {
        self.nic.write(reg.0, value, &mut self.bus);
    }

    fn elapse(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        if let Some(next) = self.nic.elapse(self.now, &mut self.bus) {
            assert!(next > self.now, "{next} is past at {}", self.now);
        }
    }

    /// Enables queue 0 both ways, with a link.
    fn set_up(&mut self) {
        self.write(regs::CTRL, ctrl::SLU);
        self.write(regs::MDIC, mdic::write(phy::CONTROL, phy::CR_AUTONEG));
        self.elapse(1_000_000_000);
        let promiscuous = rctl::UPE | rctl::MPE | rctl::BAM;
        self.write(regs::RCTL, rctl::EN | rctl::LPE | rctl::SECRC | promiscuous);
        self.write(regs::TCTL, tctl::EN | tctl::PSP);
        self.write(regs::RXCSUM, rxcsum::TUOFL | rxcsum::IPOFL | rxcsum::PCSD);
        self.write(regs::MRQC, mrqc::ENABLE_RSS | mrqc::RSS_FIELD_IPV4_TCP);
        self.write(regs::EIMS, 0xff);
        self.write(regs::rdbal(0), RX_RING as u32);
        self.write(regs::rdlen(0), 8 * 16);
        let split = srrctl::DescType::HeaderSplit;
        self.write(regs::srrctl(0), srrctl::encode(1, 2, split, true));
        self.write(regs::psrtype(0), u32::MAX);
        self.write(regs::rxdctl(0), rxdctl::ENABLE | regs::thresholds(8, 4, 1));
        self.write(regs::tdbal(0), TX_RING as u32);
        self.write(regs::tdlen(0), 8 * 16);
        self.write(regs::txdctl(0), txdctl::ENABLE);
        for n in 0..7 {
            let buffer = BUFFERS + n * 0x500;
            self.bus
                .put(RX_RING + n * 16, rx::rx_read(buffer, buffer + 0x400));
        }
        self.write(regs::rdt(0), 7);
    }

    fn act(&mut self, input: &mut Input<'_>) {
        match input.within(0..=15u8) {
            0..=3 => {
                let (reg, value) = (register(input), value(input));
                self.write(reg, value);
            }
            4 => {
                let _ = self.nic.read(register(input).0);
            }
            5 | 6 => {
                let at = RX_RING + input.within(0..=15) * 16;
                let raw = rx::rx_read(address(input), address(input));
                self.bus.put(at, raw);
            }
            7..=9 => {
                let at = TX_RING + input.within(0..=7) * 16;
                let raw = sent(input);
                self.bus.put(at, raw);
            }
            10 => {
                let tail = input.of(&[regs::rdt(0), regs::tdt(0)]);
                let index = input.within(0..=9);
                self.write(tail, index);
            }
            11 | 12 => {
                let frame = frame(input);
                self.nic.receive(&frame, &mut self.bus);
            }
            13 => {
                let nanoseconds = input.any::<u64>() >> input.within(24..=60);
                self.elapse(nanoseconds);
            }
            14 => self.nic.plug(input.any(), &mut self.bus),
            _ => match input.within(0..=5u8) {
                0 => self.nic.reset(),
                1 => {
                    let frame = frame(input);
                    self.nic.receive_damaged(&frame, &mut self.bus);
                }
                _ => drop(self.nic.lie(&Plan::from_seed(input.any::<u16>().into()))),
            },
        }
    }
}

/// A register that does something, or any.
fn register(input: &mut Input<'_>) -> Reg {
    let queue = input.of(&[0, 0, 0, 1, 15]);
    let known = [
        regs::rdbal(queue),
        regs::rdbah(queue),
        regs::rdlen(queue),
        regs::srrctl(queue),
        regs::rdh(queue),
        regs::rdt(queue),
        regs::rxdctl(queue),
        regs::psrtype(queue),
        regs::tdbal(queue),
        regs::tdlen(queue),
        regs::tdh(queue),
        regs::tdt(queue),
        regs::txdctl(queue),
        regs::tdwbal(queue),
        regs::tdwbah(queue),
        regs::CTRL,
        regs::RCTL,
        regs::RFCTL,
        regs::RXCSUM,
        regs::RLPML,
        regs::RXPBS,
        regs::MRQC,
        regs::VET,
        regs::FCT,
        regs::TCTL,
        regs::MDIC,
        regs::EERD,
        regs::EECD,
        regs::TIMINCA,
        regs::SYSTIMH,
        regs::TSYNCTXCTL,
        regs::TSYNCRXCTL,
        regs::GPIE,
        regs::EIMS,
        regs::ICS,
        regs::reta(queue),
        regs::etqf(queue),
        regs::ftqf(queue),
        regs::imir(queue),
    ];
    match input.any::<u8>() {
        0..=31 => Reg(input.any()),
        number => known[usize::from(number) % known.len()],
    }
}

fn value(input: &mut Input<'_>) -> u32 {
    match input.within(0..=6u8) {
        0 | 1 => input.any(),
        2 => input.any::<u8>().into(),
        3 => 1 << input.within(0..=31),
        4 => (input.any::<u8>() as u32) << 25 | input.any::<u16>() as u32,
        5 => BASE as u32 + input.any::<u16>() as u32,
        _ => input.of(&[0, u32::MAX, 8 * 16, 16 * 16, 0xf_ff80]),
    }
}

/// An address in memory, at its edges, or any.
fn address(input: &mut Input<'_>) -> u64 {
    match input.any::<u8>() {
        0..=7 => input.any(),
        8..=15 => u64::MAX - u64::from(input.any::<u8>()),
        16..=31 => BASE + MEMORY as u64 - u64::from(input.any::<u8>()),
        _ => BASE + u64::from(input.any::<u16>()) % (MEMORY as u64 + 64),
    }
}

/// What a driver may have written to a ring.
fn sent(input: &mut Input<'_>) -> [u64; 2] {
    match input.within(0..=7u8) {
        0 => [input.any(), input.any()],
        1 | 2 => Context {
            vlan: input.any(),
            mac_len: input.of(&[14, 14, 18, 0, 127]),
            ip_len: input.of(&[20, 40, 0, 24, 511]),
            ip: input.of(&[None, Some(IpVersion::V4), Some(IpVersion::V6)]),
            l4: input.of(&[L4::Tcp, L4::Udp, L4::Sctp]),
            l4_len: input.of(&[20, 8, 0, 60, 255]),
            mss: input.of(&[1, 64, 1448, 0, u16::MAX]),
            queue_index: input.within(0..=1),
        }
        .encode(),
        _ => {
            let bits = input.any::<u16>();
            let len = match bits & 3 {
                0 => input.any(),
                _ => input.within(0..=200),
            };
            let has = |bit: u32| bits >> bit & 1 != 0;
            Data {
                address: address(input),
                len,
                paylen: match input.within(0..=3u8) {
                    0 => input.any(),
                    1 => len.into(),
                    _ => u32::from(len).saturating_sub(input.of(&[42, 54, 62, 74])),
                },
                end_of_packet: has(2) || has(3),
                report_status: has(4),
                tso: has(5),
                ip_checksum: has(6),
                l4_checksum: has(7),
                vlan: has(8),
                timestamp: has(9),
                context: has(10),
                queue_index: has(11).into(),
            }
            .encode()
        }
    }
}

/// A frame that begins like one, or does not.
fn frame(input: &mut Input<'_>) -> Vec<u8> {
    let len = match input.within(0..=5u8) {
        0 => input.any::<u16>() as usize % 0x2700,
        1 => input.within(0..=64),
        _ => input.within(60..=400),
    };
    let mut frame = input.bytes(len);
    let mut at = 12;
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = frame.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(0, &MAC);
    if input.within(0..=3u8) == 0 {
        put(at, &[0x81, 0]);
        at += 4;
    }
    let kind = input.of(&[0x800, 0x800, 0x86dd, 0x86dd, 0x8808, 0x88f7, 40]);
    put(at, &u16::to_be_bytes(kind));
    let protocol = input.of(&[6, 17, 132, 41, 44, 43, 60, 0]);
    let room = len.saturating_sub(at + 2) as u16;
    let claimed = match input.within(0..=3u8) {
        0 => input.any(),
        _ => room,
    };
    if kind == 0x800 {
        put(at + 2, &[input.of(&[0x45, 0x45, 0x46, 0x4f, 0x40])]);
        put(at + 4, &claimed.to_be_bytes());
        put(at + 8, &[input.of(&[0, 0x40, 0x20, 0])]);
        put(at + 11, &[protocol]);
    } else {
        put(at + 2, &[0x60]);
        put(at + 6, &claimed.saturating_sub(40).to_be_bytes());
        put(at + 8, &[protocol]);
    }
    frame
}
