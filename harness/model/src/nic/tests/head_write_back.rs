// SPDX-License-Identifier: MIT OR Apache-2.0

//! The head of a transmit queue, written to memory instead of reports in its descriptors (82576 datasheet,
//! chapter "Transmit Completions Head Write Back").

use super::*;

/// Where the head goes, and what is there before.
const PLACE: u64 = 0x3000;
const BEFORE: u32 = 0x5a5a_5a5a;

/// A port of which queue 1 has this in TDWBAL from when it is enabled.
fn port(low: u32) -> Port {
    let mut port = Port::new();
    port.write(regs::txdctl(1), 0);
    port.later(1_000_000);
    port.write(regs::tdwbal(1), low);
    port.write(regs::txdctl(1), txdctl::ENABLE);
    for at in [PLACE - 4, PLACE, PLACE + 4] {
        put(&mut port, at, BEFORE);
    }
    port
}

fn put(port: &mut Port, at: u64, value: u32) {
    port.host.memory[at as usize..][..4].copy_from_slice(&value.to_le_bytes());
}

fn word(port: &Port, at: u64) -> u32 {
    let bytes = &port.host.memory[at as usize..][..4];
    u32::from_le_bytes(bytes.try_into().unwrap())
}

/// Posts packets of 64 bytes, of which each has a report or not, and says what was written where.
fn post(port: &mut Port, reports: &[bool]) -> Vec<u64> {
    let tail = port.read(regs::tdt(1));
    for (n, report_status) in (tail..).zip(reports) {
        let data = Data {
            address: TX_BUFFER,
            len: 64,
            paylen: 64,
            end_of_packet: true,
            report_status: *report_status,
            ..Data::default()
        };
        port.put(TX_RING + u64::from(n) * 16, &data.encode());
    }
    port.host.written.clear();
    port.write(regs::tdt(1), tail + reports.len() as u32);
    port.host.written.clone()
}

#[test]
fn the_head_is_written_once_for_each_packet_with_a_report_and_no_descriptor_is() {
    let port = &mut port(PLACE as u32 | 1);
    assert_eq!(post(port, &[true]), [PLACE]);
    assert_eq!(word(port, PLACE), 1);
    assert_eq!(post(port, &[false, false]), []);
    assert_eq!((word(port, PLACE), port.read(regs::tdh(1))), (1, 3));
    assert_eq!(post(port, &[true, false, true]), [PLACE; 2]);
    assert_eq!(word(port, PLACE), 6);
    assert_eq!(port.host.frames.len(), 6);
    for n in 0..6 {
        let high = word(port, TX_RING + n * 16 + 12);
        assert!(!i82576::tx::is_done(u64::from(high) << 32), "{n}");
    }
    assert_eq!(port.nic.violations(), []);
}

#[test]
fn the_place_is_a_whole_word_whatever_the_lowest_bits_say() {
    for low in [1, 3] {
        let port = &mut port(PLACE as u32 | low);
        assert_eq!(post(port, &[true]), [PLACE]);
        let around = [PLACE - 4, PLACE, PLACE + 4].map(|at| word(port, at));
        assert_eq!(around, [BEFORE, 1, BEFORE]);
    }
}

#[test]
fn without_its_bit_descriptors_are_reported_and_the_place_is_let_alone() {
    for low in [0, 2] {
        let port = &mut port(PLACE as u32 | low);
        assert_eq!(post(port, &[false, true]), [TX_RING + 24]);
        assert_eq!(word(port, PLACE), BEFORE);
        assert!(i82576::tx::is_done(
            u64::from(word(port, TX_RING + 28)) << 32
        ));
    }
}

#[test]
fn the_head_goes_only_where_the_device_was_let_write_when_its_queue_was_enabled() {
    let port = &mut port(PLACE as u32 | 1);
    // Moved behind the back of a queue that runs.
    port.write(regs::tdwbal(1), (PLACE as u32 + 8) | 1);
    assert_eq!(post(port, &[true]), []);
    let found = port.nic.violations();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].what, found[0].transmit), (What::NotLent, true));
    // No bus master.
    port.write(regs::tdwbal(1), PLACE as u32 | 1);
    port.host.silenced = true;
    assert_eq!(post(port, &[true]), []);
    port.host.silenced = false;
    // Nothing answers there.
    let mut port = self::port(0x7fff_0001);
    assert_eq!(post(&mut port, &[true]), []);
    assert_eq!(port.nic.violations()[0].what, What::Unreachable);
}
