// SPDX-License-Identifier: MIT OR Apache-2.0

//! What wakes a port, and what it remembers of that.

mod filters;

use i82576::regs::{wuc, wufc, wupl, wupm};

use super::*;

/// A frame to an address, with this in its payload.
fn frame(to: [u8; 6], payload: &[u8]) -> Vec<u8> {
    [&to[..], &[2; 6], &[0x08, 0x42], payload].concat()
}

fn magic(station: [u8; 6]) -> Vec<u8> {
    [&[1, 2, 3][..], &[0xff; 6], &station.repeat(16), &[9]].concat()
}

/// Has a frame come while it sleeps. Returns what it says has woken it.
fn wakes(port: &mut Port, frame: &[u8]) -> Option<u32> {
    port.nic.set_asleep(true);
    port.nic.receive_asleep(frame);
    let woken = port.nic.take_wake();
    let status = port.read(regs::WUS);
    port.write(regs::WUS, u32::MAX);
    assert_eq!(port.read(regs::WUS), 0);
    assert_eq!(woken, status != 0);
    woken.then_some(status)
}

#[test]
fn each_filter_wakes_by_its_frames_alone() {
    let port = &mut Port::new();
    port.write(regs::WUC, wuc::PME_EN);
    let multicast = [1, 0, 0x5e, 0, 0, 1];
    let control = port.read(regs::RCTL);
    port.write(regs::RCTL, control | rctl::MPE);
    let other = [0x52, 0x54, 0, 0, 0, 2];
    let mut short = magic(MAC);
    short.truncate(3 + 6 + 15 * 6);
    let frames = [
        (frame(MAC, b"hello"), wufc::EX),
        (frame([0xff; 6], b"hello"), wufc::BC),
        (frame(multicast, b"hello"), wufc::MC),
        (frame(MAC, &magic(MAC)), wufc::EX | wufc::MAG),
        (frame([0xff; 6], &magic(MAC)), wufc::BC | wufc::MAG),
        (frame([0xff; 6], &magic(other)), wufc::BC),
        (frame(MAC, &short), wufc::EX),
        (frame(other, &magic(MAC)), 0),
    ];
    for filter in [wufc::EX, wufc::BC, wufc::MC, wufc::MAG, wufc::LNKC, 0, 0x1f] {
        port.write(regs::WUFC, filter);
        for (frame, causes) in &frames {
            let expected = Some(causes & filter).filter(|causes| *causes != 0);
            assert_eq!(wakes(port, frame), expected, "{filter:#x} {frame:x?}");
        }
    }
    // The magic packet alone, and without a driver, too.
    for (control, expected) in [(0, None), (wuc::APME, Some(wufc::MAG))] {
        port.write(regs::WUC, control);
        assert_eq!(wakes(port, &frames[3].0), expected);
        assert_eq!(wakes(port, &frames[0].0), None);
    }
}

#[test]
fn a_link_that_comes_wakes_and_a_port_that_does_not_sleep_wakes_by_nothing() {
    let port = &mut Port::new();
    port.write(regs::WUC, wuc::PME_EN);
    port.write(regs::WUFC, wufc::LNKC | wufc::EX);
    port.nic.receive(&frame(MAC, b"hello"), &mut port.host);
    port.nic.plug(false, &mut port.host);
    assert!(!port.nic.take_wake());
    port.nic.set_asleep(true);
    port.nic.receive_asleep(&frame(MAC, b"hello"));
    assert!(!port.nic.take_wake(), "there is no link");
    port.nic.plug(true, &mut port.host);
    port.later(1_000_000_000);
    assert!(port.nic.take_wake());
    assert_eq!(port.read(regs::WUS), wufc::LNKC);
}

#[test]
fn what_has_woken_a_port_is_known_after_it_was_reset() {
    let port = &mut Port::new();
    port.write(regs::WUC, wuc::PME_EN);
    port.write(regs::WUFC, wufc::MAG);
    port.nic.set_asleep(true);
    let frame = frame(MAC, &magic(MAC));
    port.nic.receive_asleep(&frame);
    port.nic.reset();
    port.nic.set_asleep(false);
    port.write(regs::CTRL, ctrl::RST);
    assert_eq!(port.read(regs::WUS), wufc::MAG);
    assert_eq!(port.read(regs::WUPL), frame.len() as u32);
    let words = (0..32).map(|n| port.read(wupm(n)).to_le_bytes());
    let kept: Vec<_> = words.flatten().collect();
    assert_eq!(kept[..frame.len()], frame);
}

#[test]
fn the_first_packet_is_kept_until_the_driver_has_seen_it() {
    let port = &mut Port::new();
    port.write(regs::WUC, wuc::PME_EN);
    port.write(regs::WUFC, wufc::EX | wufc::BC | wufc::LNKC);
    port.nic.set_asleep(true);
    let first = frame(MAC, b"first");
    port.nic.receive_asleep(&first);
    assert!(port.nic.take_wake());
    port.nic.receive_asleep(&frame([0xff; 6], b"the second"));
    assert!(!port.nic.take_wake());
    assert_eq!(port.read(regs::WUS), wufc::EX);
    assert_eq!(port.read(regs::WUPL), first.len() as u32);
    // The link is none of its business.
    port.nic.plug(false, &mut port.host);
    assert!(port.nic.take_wake());
    assert_eq!(port.read(regs::WUS), wufc::EX | wufc::LNKC);
    port.nic.plug(true, &mut port.host);
    port.later(1_000_000_000);
    assert!(!port.nic.take_wake(), "that the link has changed is known");
    port.write(regs::WUS, wufc::EX);
    let long = frame([0xff; 6], &[1; 4000]);
    port.nic.receive_asleep(&long);
    assert!(port.nic.take_wake());
    assert_eq!(port.read(regs::WUPL), wupl::MAX);
}
