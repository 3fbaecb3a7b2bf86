// SPDX-License-Identifier: MIT OR Apache-2.0

//! Memory that is lent to the device, and what a driver must not do with it.

use i82576::{
    regs::{self, rxdctl, srrctl, txdctl},
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
        times: 3,
        ..Lie::once(Kind::AfterStop, 5)
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

fn one(kind: Kind) -> Plan {
    Plan {
        lies: vec![Lie::once(kind, 0)],
    }
}

/// Has queue 0 have the buffer of queue 1's descriptor `nth`, too.
fn post_to_another(port: &mut Port, nth: u64) {
    const RING: u64 = 0x3000;
    port.write(regs::rxdctl(0), rxdctl::ENABLE | regs::thresholds(8, 1, 1));
    let tail = port.read(regs::rdt(0));
    let raw = rx::rx_read(PAYLOAD + nth * 0x1000, HEADERS);
    port.put(RING + u64::from(tail) * 16, &raw);
    port.write(regs::rdt(0), tail + 1);
}

#[test]
fn a_driver_that_was_told_nonsense_is_to_blame_for_what_that_does_not_excuse() {
    let port = &mut Port::new();
    port.nic.lie(&one(Kind::Ones));
    assert_eq!(port.read(regs::STATUS), u32::MAX);
    port.write(regs::rdbal(1), 0x3000);
    assert_eq!(whats(port), [What::Moved]);
    // Once may be a mistake.
    port.nic.lie(&one(Kind::Ones));
    assert_eq!(port.read(regs::rxdctl(1)), u32::MAX);
    port.write(regs::rdbal(1), 0x3800);
    assert_eq!(whats(port), [What::Moved]);
    // It is told of one queue that it is gone, and then the truth.
    port.nic.lie(&one(Kind::Ones));
    assert_eq!(port.read(regs::rxdctl(1)), u32::MAX);
    port.write(regs::rdbal(1), RX_RING as u32);
    assert_eq!(whats(port), []);
    port.write(regs::tdbal(1), 0x3800);
    assert_eq!(whats(port), [What::Moved]);
    assert_ne!(port.read(regs::rxdctl(1)) & rxdctl::ENABLE, 0);
    port.write(regs::rdbal(1), 0x3800);
    assert_eq!(whats(port), [What::Moved]);
}

#[test]
fn a_driver_that_was_told_that_a_queue_rests_has_its_memory_back_and_no_more() {
    let port = &mut Port::new();
    port.write(regs::rdbal(0), 0x3000);
    port.write(regs::rdlen(0), 8 * 16);
    port.write(
        regs::srrctl(0),
        srrctl::encode(4, 0, srrctl::DescType::OneBuffer, true),
    );
    port.post(16);
    port.nic.receive(&segment(&[7; 100]), &mut port.host);
    // Another queue must not have what this one has.
    post_to_another(port, 9);
    assert_eq!(whats(port), [What::PostedTwice]);
    let mut plan = one(Kind::Stuck);
    plan.lies.extend(one(Kind::Garbage).lies);
    plan.lies[1].value = rxdctl::ENABLE.into();
    port.nic.lie(&plan);
    port.write(regs::rxdctl(1), 0);
    port.later(1_000_000);
    assert_eq!(port.read(regs::rxdctl(1)) & rxdctl::ENABLE, 0);
    assert_eq!(port.nic.lie(&Plan::default()), [1, 1]);
    post_to_another(port, 10);
    port.write(regs::rdbal(1), 0x3800);
    assert_eq!(whats(port), []);
    // It begins anew, and has what is posted from now on.
    port.write(regs::rxdctl(1), rxdctl::ENABLE);
    port.write(regs::rdbal(1), RX_RING as u32);
    assert_eq!(whats(port), [What::Moved]);
}
