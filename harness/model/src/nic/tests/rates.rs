// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rate limits of queues, by the port's registers and its clock.

use i82576::regs::rttbcnrc;

use super::*;

/// Limits a queue, in Mb/s, on a link of 1000 Mb/s.
fn limit(port: &mut Port, queue: u32, rate: u32) {
    port.write(regs::RTTDQSEL, queue);
    port.write(regs::RTTBCNRM, 0);
    port.write(regs::RTTBCNRC, rttbcnrc::encode(1000, rate));
}

#[test]
fn frames_of_a_queue_leave_at_its_rate_and_are_reported_as_they_do() {
    let port = &mut Port::new();
    // Another queue's limit is none of this one's.
    limit(port, 2, 1);
    limit(port, 1, 100);
    for _ in 0..4 {
        port.send(&segment(&[1; 1442]), Data::default());
    }
    // A frame of 1500 bytes with its check sequence takes 12 us, and ten times that at a tenth.
    for count in 1..4 {
        assert_eq!(port.host.frames.len(), count);
        assert!(i82576::tx::is_done(
            port.get(TX_RING + 16 * count as u64 - 8)
        ));
        assert!(!i82576::tx::is_done(
            port.get(TX_RING + 16 * count as u64 + 8)
        ));
        let due = port.nic.elapse(port.now, &mut port.host);
        assert_eq!(due, Some(port.now + 120_000));
        port.later(119_999);
        assert_eq!(port.host.frames.len(), count);
        port.later(1);
    }
    assert_eq!(port.host.frames.len(), 4);
    assert_eq!(port.nic.elapse(port.now, &mut port.host), None);
}

#[test]
fn what_waits_leaves_at_once_when_its_limit_is_lifted() {
    let port = &mut Port::new();
    limit(port, 1, 1);
    for _ in 0..3 {
        port.send(&segment(&[1; 1000]), Data::default());
    }
    assert_eq!(port.host.frames.len(), 1);
    limit(port, 1, 0);
    assert_eq!(port.host.frames.len(), 3);
    assert_eq!(port.read(regs::RTTBCNRC), 0, "it is write only");
}

#[test]
fn what_waits_for_its_rate_while_there_is_no_link_keeps_nobody_busy() {
    let port = &mut Port::new();
    limit(port, 1, 100);
    for _ in 0..2 {
        port.send(&segment(&[1; 1000]), Data::default());
    }
    port.nic.plug(false, &mut port.host);
    port.later(1_000_000_000);
    assert_eq!(port.nic.elapse(port.now, &mut port.host), None);
    assert_eq!(port.host.frames.len(), 1);
    port.nic.plug(true, &mut port.host);
    port.later(1_000_000_000);
    assert_eq!(port.host.frames.len(), 2);
}
