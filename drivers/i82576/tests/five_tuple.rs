// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Five-tuple filters, against a model of the device that knows the registers' bits by number, as
//! the register headers of `igb` and DPDK have them.

use std::cell::RefCell;
use std::collections::HashMap;

use i82576::five_tuple::{exist, Filter, Place, Protocol, Registers, Table};
use i82576::regs::{self, Reg};
use proptest::prelude::*;

const PLACES: u16 = 8;

/// What the filters see of a packet.
#[derive(Debug, Clone, Copy)]
struct Packet {
    protocol: u8,
    source: [u8; 4],
    destination: [u8; 4],
    source_port: u16,
    destination_port: u16,
}

/// The device: registers that keep `masks` of what is written, all of it where there is no mask.
#[derive(Default)]
struct Device {
    registers: RefCell<HashMap<u32, u32>>,
    masks: HashMap<u32, u32>,
}

impl Device {
    fn write(&self, reg: Reg, value: u32) {
        let mask = self.masks.get(&reg.0).copied().unwrap_or(u32::MAX);
        self.registers.borrow_mut().insert(reg.0, value & mask);
    }

    fn read(&self, reg: Reg) -> u32 {
        self.registers
            .borrow()
            .get(&reg.0)
            .copied()
            .unwrap_or_default()
    }

    /// Has the filters of `table`.
    fn with(table: &Table) -> Self {
        let device = Self::default();
        for n in 0..PLACES {
            for (reg, value) in table.registers(n).writes(n) {
                device.write(reg, value);
            }
        }
        device
    }

    /// Whether filter `n` matches a packet. A field is compared unless its bypass bit is set; a
    /// register holds the bytes of a field as they are on the wire, from its lowest on.
    fn matches(&self, n: u32, packet: &Packet) -> bool {
        let at = |base: u32| self.read(Reg(base + 4 * n)).to_le_bytes();
        let bit = |base: u32, bit: u32| self.read(Reg(base + 4 * n)) >> bit & 1 == 1;
        let [protocol, ..] = at(0x59e0);
        let [s0, s1, ..] = at(0x59c0);
        let [d0, d1, ..] = at(0x5a80);
        let compared = [
            (bit(0x59e0, 28), protocol == packet.protocol),
            (bit(0x59e0, 29), at(0x5980) == packet.source),
            (bit(0x59e0, 30), at(0x59a0) == packet.destination),
            (
                bit(0x59e0, 31),
                [s0, s1] == packet.source_port.to_be_bytes(),
            ),
            (
                bit(0x5a80, 17),
                [d0, d1] == packet.destination_port.to_be_bytes(),
            ),
            // No virtual function, size or TCP flag is what the registers hold: bypassed only.
            (bit(0x59e0, 15), false),
            (bit(0x5aa0, 12), false),
            (bit(0x5aa0, 19), false),
        ];
        bit(0x59e0, 8) && compared.iter().all(|&(bypassed, equal)| bypassed || equal)
    }

    /// The queue that the filters send a packet to: the one with the highest priority says, and of
    /// those the first.
    fn queue(&self, packet: &Packet) -> Option<u8> {
        let matching = (0..u32::from(PLACES)).filter(|&n| self.matches(n, packet));
        let priority = |n: u32| self.read(Reg(0x5a80 + 4 * n)) >> 29;
        let first = matching.max_by_key(|&n| (priority(n), std::cmp::Reverse(n)))?;
        Some((self.read(Reg(0x59e0 + 4 * first)) >> 16 & 0xf) as u8)
    }

    fn has_filters(&self) -> bool {
        exist(|reg, value| self.write(reg, value), |reg| self.read(reg))
    }

    /// Cannot keep bits of register `base` of filter `n`.
    fn without(mut self, base: u32, n: u32, bits: u32) -> Self {
        self.masks.insert(base + 4 * n, !bits);
        self
    }
}

/// Whether a filter means a packet.
fn means(filter: &Filter, packet: &Packet) -> bool {
    filter.protocol as u8 == packet.protocol
        && filter.source.is_none_or(|it| it == packet.source)
        && filter.destination.is_none_or(|it| it == packet.destination)
        && filter.source_port.is_none_or(|it| it == packet.source_port)
        && filter
            .destination_port
            .is_none_or(|it| it == packet.destination_port)
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop::sample::select(vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp])
}

/// Few enough that filters and packets meet.
fn near_address() -> impl Strategy<Value = [u8; 4]> {
    prop::sample::select(vec![[192, 0, 2, 1], [192, 0, 2, 2], [1, 2, 0, 192], [0; 4]])
}

fn near_port() -> impl Strategy<Value = u16> {
    prop::sample::select(vec![0x1234, 0x3412, 80, 0])
}

prop_compose! {
    fn any_filter()(
        protocol in protocol(),
        source: Option<[u8; 4]>,
        destination: Option<[u8; 4]>,
        source_port: Option<u16>,
        destination_port: Option<u16>,
        queue in 0u8..16,
    ) -> Filter {
        Filter { protocol, source, destination, source_port, destination_port, queue }
    }
}

prop_compose! {
    fn near_filter()(
        protocol in protocol(),
        source in prop::option::of(near_address()),
        destination in prop::option::of(near_address()),
        source_port in prop::option::of(near_port()),
        destination_port in prop::option::of(near_port()),
        queue in 0u8..16,
    ) -> Filter {
        Filter { protocol, source, destination, source_port, destination_port, queue }
    }
}

prop_compose! {
    fn near_packet()(
        protocol in prop::sample::select(vec![6u8, 17, 132, 1, 0]),
        source in near_address(),
        destination in near_address(),
        source_port in near_port(),
        destination_port in near_port(),
    ) -> Packet {
        Packet { protocol, source, destination, source_port, destination_port }
    }
}

/// A table with these filters.
fn table(filters: &[Option<Filter>]) -> Table {
    let mut table = Table::EMPTY;
    for (n, filter) in (0u32..).zip(filters) {
        if let Some(filter) = filter {
            table.insert(Place::At(n), *filter).unwrap();
        }
    }
    table
}

#[test]
fn a_filter_is_in_the_registers_as_the_kernel_and_dpdk_write_it() {
    let filter = Filter {
        protocol: Protocol::Udp,
        source: Some([192, 0, 2, 1]),
        destination: None,
        source_port: Some(319),
        destination_port: Some(0x1234),
        queue: 5,
    };
    let registers = Registers {
        ftqf: 0x4005_8111,
        saqf: 0x0102_00c0,
        daqf: 0,
        spqf: 0x3f01,
        imir: 0xe000_3412,
        imirext: 0x0008_1000,
    };
    assert_eq!(filter.registers(0), registers);
    assert_eq!(Registers::OFF.ftqf & 1 << 8, 0);
}

#[test]
fn a_filter_is_off_while_it_changes() {
    let filter = Filter {
        protocol: Protocol::Tcp,
        source: None,
        destination: None,
        source_port: None,
        destination_port: Some(5201),
        queue: 3,
    };
    let writes = filter.registers(2).writes(2);
    let (first, last) = (writes[0], writes[6]);
    assert_eq!((first.0, last.0), (regs::ftqf(2), regs::ftqf(2)));
    assert_eq!(first.1 >> 8 & 1, 0);
    assert_eq!(last.1 >> 8 & 1, 1);
    assert!(writes[1..6].iter().all(|(reg, _)| *reg != regs::ftqf(2)));
}

#[test]
fn filters_exist_where_the_registers_keep_what_is_written() {
    let device = Device::default();
    assert!(device.has_filters());
    // Bits that no filter uses may be fixed, as reserved ones are.
    let reserved =
        Device::default()
            .without(0x59e0, 0, 0x0000_7e00)
            .without(0x59c0, 7, 0xffff_0000);
    assert!(reserved.has_filters());
    // What a device holds afterwards is no filter.
    for n in 0..PLACES {
        assert_eq!(
            Registers::read(n, |reg| device.read(reg)),
            Registers::OFF,
            "{n}"
        );
    }
}

#[test]
fn filters_do_not_exist_where_a_register_is_missing() {
    // QEMU's model, and a device that is gone.
    assert!(!exist(|_, _| (), |_| 0));
    assert!(!exist(|_, _| (), |_| u32::MAX));
    for base in [0x59e0, 0x5980, 0x59a0, 0x59c0, 0x5a80, 0x5aa0] {
        for n in 0..u32::from(PLACES) {
            let device = Device::default().without(base, n, u32::MAX);
            assert!(!device.has_filters(), "{base:#x} + 4 * {n}");
        }
    }
    // One register where there should be eight.
    let one = RefCell::new(0);
    let alias = exist(
        |reg, value| {
            if reg.0 & !0x1f == 0x59e0 {
                *one.borrow_mut() = value;
            }
        },
        |_| *one.borrow(),
    );
    assert!(!alias);
}

proptest! {
    #[test]
    fn a_filter_can_be_read_back_from_its_registers(filter in any_filter(), n in 0..PLACES) {
        prop_assert_eq!(filter.registers(n).filter(), Some(filter));
    }

    #[test]
    fn what_is_no_filter_of_ours_is_read_as_none(filter in any_filter(), n in 0..PLACES) {
        let good = filter.registers(n);
        prop_assert_eq!(Registers::OFF.filter(), None);
        for flipped in [8, 10, 15, 27, 28] {
            let ftqf = good.ftqf ^ 1 << flipped;
            prop_assert_eq!(Registers { ftqf, ..good }.filter(), None, "bit {}", flipped);
        }
        prop_assert_eq!(Registers { imirext: 0, ..good }.filter(), None);
    }

    #[test]
    fn the_device_sends_packets_where_the_first_filter_that_means_them_says(
        filters in prop::collection::vec(prop::option::of(near_filter()), 8),
        packets in prop::collection::vec(near_packet(), 1..50),
    ) {
        let device = Device::with(&table(&filters));
        for packet in packets {
            let first = filters.iter().flatten().find(|filter| means(filter, &packet));
            prop_assert_eq!(device.queue(&packet), first.map(|filter| filter.queue));
        }
    }

    #[test]
    fn a_filter_that_is_taken_out_matches_nothing(
        filter in near_filter(),
        packet in near_packet(),
        n in 0..PLACES,
    ) {
        let mut table = Table::EMPTY;
        table.insert(Place::At(n.into()), filter).unwrap();
        let device = Device::with(&table);
        prop_assert_eq!(device.queue(&packet).is_some(), means(&filter, &packet));
        table.remove(n.into());
        for (reg, value) in table.registers(n).writes(n) {
            device.write(reg, value);
        }
        prop_assert_eq!(device.queue(&packet), None);
    }
}
