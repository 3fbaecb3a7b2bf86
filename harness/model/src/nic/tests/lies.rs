// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lies about frames, as a driver sees them.

mod told;

use i82576::{
    regs::{self, rxdctl, srrctl},
    rx::{self, WriteBack},
};

use super::*;

#[test]
fn a_plan_is_told_in_what_is_written_back_and_ends_with_the_next() {
    let port = &mut Port::new();
    port.post(8);
    let lies = vec![
        Lie::once(Kind::HeaderLength, 1000),
        Lie::once(Kind::Length, 2),
    ];
    port.nic.lie(&Plan { lies });
    port.nic.receive(&segment(&[7; 100]), &mut port.host);
    let raw = [0, 8].map(|part| port.get(RX_RING + part));
    let first = WriteBack::from_raw(raw[0], raw[1]);
    assert_eq!(raw[0] >> 21 & 0x3ff, 1000, "{first:?}");
    assert_eq!(raw[1] >> 32 & 0xffff, 0xffff, "{first:?}");
    assert_eq!(port.nic.lie(&Plan::default()), [1, 1]);
}

#[test]
fn a_lie_about_a_frame_is_told_once_however_long_it_waits() {
    let port = &mut Port::new();
    let split = srrctl::DescType::HeaderSplit;
    port.write(regs::srrctl(1), srrctl::encode(4, 4, split, false));
    port.post(1);
    let lies = [Kind::Unsplit, Kind::Corrupt].map(|kind| Lie {
        times: u32::MAX,
        ..Lie::once(kind, 5)
    });
    port.nic.lie(&Plan {
        lies: lies.to_vec(),
    });
    // More than a buffer has, twice: they wait until there are enough.
    for _ in 0..2 {
        port.nic.receive(&segment(&[7; 6000]), &mut port.host);
    }
    port.later(1_000_000);
    port.post(3);
    port.post(8);
    port.later(1_000_000);
    assert!(rx::is_done(port.get(RX_RING + 3 * 16 + 8)));
    assert_eq!(port.nic.told(), [2, 2]);
}

#[test]
fn a_frame_goes_to_another_queue_that_receives_if_there_is_one() {
    let port = &mut Port::new();
    port.post(8);
    let lie = Lie {
        times: u32::MAX,
        ..Lie::once(Kind::Queue, 5)
    };
    port.nic.lie(&Plan { lies: vec![lie] });
    port.nic.receive(&segment(&[7; 100]), &mut port.host);
    assert!(rx::is_done(port.get(RX_RING + 8)), "there is no other");
    port.write(regs::rdbal(3), 0x3000);
    port.write(regs::rdlen(3), 8 * 16);
    port.write(regs::rxdctl(3), rxdctl::ENABLE | regs::thresholds(8, 1, 1));
    port.put(0x3000, &rx::rx_read(PAYLOAD + 0x8000, 0));
    port.write(regs::rdt(3), 1);
    port.nic.receive(&segment(&[7; 100]), &mut port.host);
    assert!(rx::is_done(port.get(0x3000 + 8)));
    assert!(!rx::is_done(port.get(RX_RING + 16 + 8)));
}
