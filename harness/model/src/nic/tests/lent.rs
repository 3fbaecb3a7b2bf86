// SPDX-License-Identifier: MIT OR Apache-2.0

//! Memory that is lent to the device, and what a driver must not do with it.

use i82576::{
    regs::{self, ctrl, rxdctl, txdctl},
    rx,
};

use super::*;

/// What was wrong since this was last asked.
fn whats(port: &mut Port) -> Vec<What> {
    let violations = port.nic.violations();
    violations.into_iter().map(|found| found.what).collect()
}

#[test]
fn a_device_that_goes_on_after_its_queue_rests_is_held_back_and_told_of() {
    let port = &mut Port::new();
    port.post(8);
    let lie = Lie {
        kind: Kind::AfterStop,
        after: 0,
        times: 3,
        value: 5,
    };
    port.nic.lie(&Plan { lies: vec![lie] });
    port.nic.receive(&segment(&[7; 100]), &mut port.host);
    port.write(regs::rxdctl(1), 0);
    assert_eq!((whats(port), port.nic.told()), (vec![], vec![0]));
    port.host.written.clear();
    port.later(1_000_000);
    let found = port.nic.violations();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].what, found[0].transmit), (What::NotLent, false));
    assert_eq!(found[0].writes.last(), Some(&(regs::rxdctl(1).0, 0)));
    port.write(regs::txdctl(1), 0);
    port.later(1_000_000);
    assert_eq!(
        (whats(port), port.nic.told()),
        (vec![What::NotLent], vec![2])
    );
    assert_eq!(port.host.written, []);
}

#[test]
fn queues_that_stop_and_start_again_on_other_rings_violate_nothing() {
    let port = &mut Port::new();
    for round in 0..3 {
        port.post(8);
        port.nic.receive(&segment(&[7; 5000]), &mut port.host);
        port.send(&segment(b"hello"), Data::default());
        port.write(regs::rxdctl(1), 0);
        port.write(regs::txdctl(1), 0);
        port.later(1_000_000);
        for (reg, value) in [
            (regs::rdlen(1), (32 << (round & 1)) * 16),
            (regs::rdh(1), 0),
            (regs::rdt(1), 0),
            (regs::rxdctl(1), rxdctl::ENABLE | regs::thresholds(8, 8, 1)),
            (regs::tdbal(1), TX_RING as u32),
            (regs::tdh(1), 0),
            (regs::tdt(1), 0),
            (regs::txdctl(1), txdctl::ENABLE),
        ] {
            port.write(reg, value);
        }
    }
    assert_eq!(whats(port), []);
}

#[test]
fn a_ring_that_is_moved_before_its_queue_rests_is_a_violation() {
    let port = &mut Port::new();
    for (control, base, len) in [
        (regs::rxdctl(1), regs::rdbal(1), regs::rdlen(1)),
        (regs::txdctl(1), regs::tdbal(1), regs::tdlen(1)),
    ] {
        let same = port.read(base);
        port.write(base, same);
        assert_eq!(whats(port), []);
        port.write(len, 32 * 16);
        port.write(control, 0);
        port.write(base, 0x3000);
        assert_eq!(whats(port), [What::Moved; 2]);
        port.later(1_000_000);
        port.write(base, 0x3800);
        assert_eq!(whats(port), []);
    }
}

#[test]
fn a_buffer_that_is_posted_twice_is_a_violation_and_one_that_was_filled_is_none() {
    let port = &mut Port::new();
    port.write(regs::rxdctl(1), rxdctl::ENABLE | regs::thresholds(8, 1, 1));
    port.post(8);
    port.nic.receive(&segment(&[7; 100]), &mut port.host);
    // The first one is the driver's again, the sixth one is not.
    for (n, buffer) in [(8, 0), (9, 5)] {
        let raw = rx::rx_read(PAYLOAD + buffer * 0x1000, HEADERS + 0x800 + n * 0x100);
        port.put(RX_RING + n * 16, &raw);
        port.write(regs::rdt(1), n as u32 + 1);
        // They are fetched when fewer than eight are left.
        port.nic.receive(&segment(&[7; 3000]), &mut port.host);
        let expected = if buffer == 0 {
            vec![]
        } else {
            vec![What::PostedTwice]
        };
        assert_eq!(whats(port), expected, "{n}");
    }
}

#[test]
fn a_driver_that_was_told_nonsense_is_not_to_blame_for_where_it_moves_rings() {
    let port = &mut Port::new();
    let lie = Lie {
        kind: Kind::Ones,
        after: 0,
        times: 1,
        value: 0,
    };
    port.nic.lie(&Plan { lies: vec![lie] });
    assert_eq!(port.read(regs::rxdctl(1)), u32::MAX);
    port.write(regs::rdbal(1), 0x3000);
    assert_eq!(whats(port), []);
    port.write(regs::CTRL, ctrl::RST);
    port.write(regs::rxdctl(1), rxdctl::ENABLE);
    port.write(regs::rdbal(1), 0x3000);
    assert_eq!(whats(port), [What::Moved]);
}
