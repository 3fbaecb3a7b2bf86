// SPDX-License-Identifier: MIT OR Apache-2.0

//! A host for tests, and the port as a whole.

use crate::{Fault, Host};

/// Memory from address 0 on, and what the device has done.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) memory: Vec<u8>,
    pub(crate) interrupts: Vec<u16>,
    pub(crate) frames: Vec<Vec<u8>>,
    /// Addresses that were written.
    pub(crate) written: Vec<u64>,
    /// Whether the device is no bus master.
    pub(crate) silenced: bool,
}

impl Recorder {
    pub(crate) fn with_memory(bytes: usize) -> Self {
        Self {
            memory: vec![0; bytes],
            ..Self::default()
        }
    }
}

impl Host for Recorder {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        if self.silenced {
            return Err(Fault::NoMaster);
        }
        let start = usize::try_from(address).map_err(|_| Fault::Unanswered)?;
        let end = start.checked_add(bytes.len()).ok_or(Fault::Unanswered)?;
        bytes.copy_from_slice(self.memory.get(start..end).ok_or(Fault::Unanswered)?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        if self.silenced {
            return Err(Fault::NoMaster);
        }
        let start = usize::try_from(address).map_err(|_| Fault::Unanswered)?;
        let end = start.checked_add(bytes.len()).ok_or(Fault::Unanswered)?;
        let place = self.memory.get_mut(start..end).ok_or(Fault::Unanswered)?;
        place.copy_from_slice(bytes);
        self.written.push(address);
        Ok(())
    }

    fn interrupt(&mut self, vector: u16) {
        self.interrupts.push(vector);
    }

    fn send(&mut self, frame: Vec<u8>) {
        self.frames.push(frame);
    }
}

mod damaged;
mod flow_control;
mod head_write_back;
mod lent;
mod lies;
mod loopback;
mod rates;
mod wake;
mod write_back_threshold;

use etherparse::PacketBuilder;
use i82576::{
    regs::{self, Reg, ctrl, icr, mdic, phy, rctl, rxdctl, srrctl, status, tctl, txdctl},
    rx::{self, Layout, WriteBack},
    tx::Data,
};

use super::{Kind, Lie, Nic, Plan, What};

const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
/// Where rings and buffers are in memory.
const TX_RING: u64 = 0x1000;
const RX_RING: u64 = 0x2000;
const TX_BUFFER: u64 = 0x4000;
const HEADERS: u64 = 0x8000;
const PAYLOAD: u64 = 0x10000;

/// A port with its link up, and queue 1 enabled in both directions.
struct Port {
    nic: Nic,
    host: Recorder,
    now: u64,
}

impl Port {
    fn new() -> Self {
        let mut this = Self {
            nic: Nic::new(MAC),
            host: Recorder::with_memory(0x40000),
            now: 0,
        };
        this.write(regs::CTRL, ctrl::SLU);
        this.write(regs::MDIC, mdic::write(phy::CONTROL, phy::CR_AUTONEG));
        this.later(1_000_000_000);
        this.write(regs::RCTL, rctl::EN | rctl::BAM | rctl::LPE | rctl::SECRC);
        this.write(regs::RLPML, 9600);
        this.write(regs::TCTL, tctl::EN | tctl::PSP);
        this.write(regs::GPIE, regs::gpie::MSIX_MODE);
        for (reg, shift) in [regs::ivar_rx(1), regs::ivar_tx(1)] {
            let entry = regs::ivar_entry(shift as u8 / 8 + 1);
            let value = regs::ivar_replace(this.read(reg), shift, entry);
            this.write(reg, value);
        }
        this.write(regs::EIAC, 0xff);
        this.write(regs::EIMS, 0xff);

        this.write(regs::tdbal(1), TX_RING as u32);
        this.write(regs::tdlen(1), 64 * 16);
        this.write(regs::txdctl(1), txdctl::ENABLE);
        this.write(regs::rdbal(1), RX_RING as u32);
        this.write(regs::rdlen(1), 64 * 16);
        let split = srrctl::DescType::HeaderSplit;
        this.write(regs::srrctl(1), srrctl::encode(4, 4, split, true));
        this.write(regs::psrtype(1), regs::psrtype::TCP);
        this.write(regs::rxdctl(1), rxdctl::ENABLE | regs::thresholds(8, 8, 1));
        // All flows go to queue 1.
        this.write(
            regs::MRQC,
            regs::mrqc::ENABLE_RSS | regs::mrqc::RSS_FIELD_IPV4_TCP,
        );
        for n in 0..32 {
            this.write(regs::reta(n), 0x0101_0101);
        }
        this
    }

    fn read(&mut self, reg: Reg) -> u32 {
        self.nic.read(reg.0)
    }

    fn write(&mut self, reg: Reg, value: u32) {
        self.nic.write(reg.0, value, &mut self.host);
    }

    /// Lets time pass.
    fn later(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        self.nic.elapse(self.now, &mut self.host);
    }

    fn put(&mut self, address: u64, values: &[u64]) {
        let at = address as usize;
        for (place, value) in self.host.memory[at..].chunks_mut(8).zip(values) {
            place.copy_from_slice(&value.to_le_bytes());
        }
    }

    fn get(&self, address: u64) -> u64 {
        let at = address as usize;
        u64::from_le_bytes(self.host.memory[at..at + 8].try_into().unwrap())
    }

    /// Posts so many buffers.
    fn post(&mut self, count: u64) {
        for n in 0..count {
            self.put(RX_RING + n * 16, &posted(n));
        }
        self.write(regs::rdt(1), count as u32);
    }

    /// Sends a frame that is in memory, as its driver would.
    fn send(&mut self, frame: &[u8], data: Data) {
        let at = TX_BUFFER as usize;
        self.host.memory[at..at + frame.len()].copy_from_slice(frame);
        let data = Data {
            address: TX_BUFFER,
            len: frame.len() as u16,
            paylen: frame.len() as u32,
            end_of_packet: true,
            report_status: true,
            ..data
        };
        let tail = self.read(regs::tdt(1));
        self.put(TX_RING + u64::from(tail) * 16, &data.encode());
        self.write(regs::tdt(1), tail + 1);
    }
}

/// A descriptor as [`Port::post`] writes it.
fn posted(n: u64) -> [u64; 2] {
    rx::rx_read(PAYLOAD + n * 0x1000, HEADERS + n * 0x100)
}

/// A segment with this payload, for the port.
fn segment(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], MAC)
        .ipv4([192, 0, 2, 2], [192, 0, 2, 1], 64)
        .tcp(1000, 2000, 7, 100);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

#[test]
fn the_link_comes_up_and_says_so() {
    let port = &mut Port::new();
    let value = port.read(regs::STATUS);
    assert!(value & status::LU != 0 && status::speed(value) == 1000);
    assert_ne!(port.read(regs::ICR) & icr::LSC, 0);
    let control = port.read(regs::CTRL);
    port.write(regs::CTRL, control);
    assert_eq!(port.read(regs::ICR) & icr::LSC, 0, "nothing has changed");
    port.nic.plug(false, &mut port.host);
    assert_eq!(port.read(regs::STATUS) & status::LU, 0);
    assert_ne!(port.read(regs::ICR) & icr::LSC, 0);
}

#[test]
fn the_address_of_the_nvm_is_what_is_received_after_a_reset() {
    let port = &mut Port::new();
    port.write(regs::ral(0), 0);
    port.write(regs::CTRL, ctrl::RST);
    let registers = [regs::ral(0), regs::rah(0)].map(|reg| port.read(reg));
    assert_eq!(regs::rah::decode(registers[0], registers[1]), Some(MAC));
    assert_eq!(port.read(regs::CTRL) & ctrl::RST, 0);
}

#[test]
fn a_frame_on_the_ring_is_sent_reported_and_signalled() {
    let port = &mut Port::new();
    let frame = segment(b"hello");
    port.send(&frame, Data::default());
    let mut padded = frame;
    padded.resize(60, 0);
    assert_eq!(port.host.frames, [padded]);
    assert!(i82576::tx::is_done(port.get(TX_RING + 8)));
    assert_eq!(port.host.interrupts, [2]);
    assert_eq!(port.read(regs::tdh(1)), 1);
    assert_eq!(port.read(regs::GPTC), 1);
    assert_eq!(port.read(regs::GPTC), 0, "reading cleared it");
}

#[test]
fn what_was_put_on_the_ring_without_a_link_is_sent_when_there_is_one() {
    let port = &mut Port::new();
    port.nic.plug(false, &mut port.host);
    port.send(&segment(b"hello"), Data::default());
    assert!(port.host.frames.is_empty());
    port.nic.plug(true, &mut port.host);
    port.later(1_000_000_000);
    assert_eq!(port.host.frames.len(), 1);
}

#[test]
fn a_segment_is_split_into_headers_and_payload() {
    let port = &mut Port::new();
    port.post(8);
    let payload: Vec<u8> = (0..5000u32).map(|n| (n * 7) as u8).collect();
    let frame = segment(&payload);
    port.nic.receive(&frame, &mut port.host);
    let raw = |port: &Port, n: u64| [0, 8].map(|part| port.get(RX_RING + n * 16 + part));
    let [low, high] = raw(port, 0);
    let first = WriteBack::from_raw(low, high);
    assert_eq!(
        first.layout(),
        Layout::Split {
            header: 54,
            payload: 4096
        }
    );
    assert_eq!(port.host.memory[HEADERS as usize..][..54], frame[..54]);
    assert_eq!(
        port.host.memory[PAYLOAD as usize..][..4096],
        payload[..4096]
    );
    assert_eq!(
        port.host.memory[PAYLOAD as usize + 0x1000..][..904],
        payload[4096..]
    );
    assert!(rx::is_done(raw(port, 1)[1]) && !rx::is_done(raw(port, 2)[1]));
}

#[test]
fn frames_that_come_at_once_have_one_interrupt() {
    let port = &mut Port::new();
    port.post(8);
    for _ in 0..3 {
        port.nic.receive(&segment(&[7; 100]), &mut port.host);
    }
    port.later(0);
    assert_eq!(port.host.interrupts, [1]);
    assert!(rx::is_done(port.get(RX_RING + 2 * 16 + 8)));
}

#[test]
fn a_packet_that_finds_no_buffer_is_dropped_and_counted_or_waits() {
    let port = &mut Port::new();
    let frame = segment(&[1; 100]);
    port.nic.receive(&frame, &mut port.host);
    assert_eq!(port.read(regs::rqdpc(1)), 1);
    // Without DROP_EN it waits in the packet buffer.
    let keep = port.read(regs::srrctl(1)) & !srrctl::DROP_EN;
    port.write(regs::srrctl(1), keep);
    port.nic.receive(&frame, &mut port.host);
    assert_eq!(port.host.interrupts, []);
    port.post(8);
    assert_eq!(port.host.interrupts, [1]);
}

#[test]
fn a_queue_says_that_it_is_disabled_once_it_rests() {
    let port = &mut Port::new();
    port.post(8);
    port.write(regs::rxdctl(1), 0);
    assert_ne!(port.read(regs::rxdctl(1)) & rxdctl::ENABLE, 0);
    port.later(1_000_000);
    assert_eq!(port.read(regs::rxdctl(1)) & rxdctl::ENABLE, 0);
    port.nic.receive(&segment(b"late"), &mut port.host);
    assert!(!rx::is_done(port.get(RX_RING + 8)));
}

#[test]
fn a_device_that_is_no_bus_master_accesses_no_memory() {
    let port = &mut Port::new();
    port.post(8);
    port.write(regs::CTRL, ctrl::SLU | ctrl::GIO_MASTER_DISABLE);
    assert_eq!(port.read(regs::STATUS) & status::GIO_MASTER_ENABLE, 0);
    port.nic.receive(&segment(b"in"), &mut port.host);
    port.send(&segment(b"out"), Data::default());
    assert!(!rx::is_done(port.get(RX_RING + 8)) && port.host.frames.is_empty());
}

#[test]
fn a_device_that_is_no_bus_master_does_nothing_that_its_driver_answers_for() {
    let port = &mut Port::new();
    port.host.silenced = true;
    port.write(regs::tdt(1), 1);
    assert!(port.nic.violations().is_empty() && port.host.frames.is_empty());
}

#[test]
fn an_address_that_nothing_answers_is_a_violation() {
    let port = &mut Port::new();
    let data = Data {
        address: 1 << 40,
        len: 60,
        end_of_packet: true,
        ..Data::default()
    };
    port.put(TX_RING, &data.encode());
    port.write(regs::tdt(1), 1);
    let found = port.nic.violations();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].what, What::Unreachable);
    assert_eq!(found[0].writes.last(), Some(&(regs::tdt(1).0, 1)));
    let text = found[0].to_string();
    assert!(
        text.starts_with("Unreachable at transmit queue 1, after")
            && text.ends_with(" 0x0e058=0x1"),
        "{text}"
    );
    assert!(port.nic.violations().is_empty());
    assert!(port.host.frames.is_empty());
}

#[test]
fn a_message_that_waits_for_a_descriptor_keeps_its_timestamp() {
    let port = &mut Port::new();
    let keep = port.read(regs::srrctl(0)) & !srrctl::DROP_EN;
    port.write(regs::srrctl(0), keep);
    port.write(regs::rdbal(0), RX_RING as u32);
    port.write(regs::rdlen(0), 64 * 16);
    port.write(regs::rxdctl(0), rxdctl::ENABLE | regs::thresholds(8, 1, 1));
    port.write(regs::TIMINCA, regs::timinca::NANOSECONDS);
    let timestamping = i82576::timestamping::Timestamping {
        tx: false,
        rx: i82576::timestamping::Messages::Sync,
    };
    port.write(
        regs::etqf(i82576::timestamping::FILTER),
        timestamping.etqf(),
    );
    port.write(regs::TSYNCRXCFG, timestamping.tsyncrxcfg());
    port.write(regs::TSYNCRXCTL, timestamping.tsyncrxctl());
    let mut message = [MAC, [2; 6]].concat();
    message.extend([0x88, 0xf7, 0]);
    message.resize(60, 0);
    port.nic.receive(&message, &mut port.host);
    let raw = rx::rx_read(PAYLOAD, HEADERS);
    port.put(RX_RING, &raw);
    port.write(regs::rdt(0), 1);
    let high = port.get(RX_RING + 8);
    assert!(rx::is_done(high));
    assert!(WriteBack::from_raw(port.get(RX_RING), high).has_timestamp());
}
