// SPDX-License-Identifier: MIT OR Apache-2.0

//! Frames that were damaged on the way.

use super::*;

#[test]
fn a_damaged_frame_is_counted_and_goes_nowhere() {
    let port = &mut Port::new();
    port.post(8);
    port.nic
        .receive_damaged(&segment(&[1; 100]), &mut port.host);
    assert_eq!(port.host.interrupts, []);
    assert_eq!(
        [regs::CRCERRS, regs::GPRC].map(|reg| port.read(reg)),
        [1, 0]
    );
    // It is nobody's, whose address was damaged, and none while the receiver is off.
    let mut other = segment(&[1; 100]);
    other[5] ^= 4;
    port.nic.receive_damaged(&other, &mut port.host);
    port.write(regs::RCTL, 0);
    port.nic
        .receive_damaged(&segment(&[1; 100]), &mut port.host);
    assert_eq!(port.read(regs::CRCERRS), 0);
}

#[test]
fn a_damaged_frame_is_stored_on_request_and_said_to_be_damaged() {
    let port = &mut Port::new();
    port.post(8);
    let control = port.read(regs::RCTL);
    port.write(regs::RCTL, control | rctl::SBP);
    let frame = segment(&[1; 100]);
    port.nic.receive_damaged(&frame, &mut port.host);
    port.nic.receive(&frame, &mut port.host);
    let errors = [0, 1].map(|n| {
        let raw = [0, 8].map(|part| port.get(RX_RING + n * 16 + part));
        assert!(rx::is_done(raw[1]));
        WriteBack::from_raw(raw[0], raw[1]).frame_error()
    });
    assert_eq!(errors, [true, false]);
    let counts = [regs::CRCERRS, regs::GPRC, regs::TPR].map(|reg| port.read(reg));
    assert_eq!(counts, [1, 1, 2]);
}
