// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is sent comes back, from the MAC or from the PHY.

use super::*;

#[test]
fn what_is_sent_in_loopback_comes_back_and_does_not_leave() {
    let port = &mut Port::new();
    port.post(8);
    let receive = port.read(regs::RCTL);
    port.write(regs::RCTL, receive | rctl::LBM_MAC);
    port.send(&segment(&[3; 200]), Data::default());
    assert!(port.host.frames.is_empty());
    assert!(rx::is_done(port.get(RX_RING + 8)));
}

#[test]
fn what_is_sent_comes_back_from_the_phy_without_a_cable_too() {
    let port = &mut Port::new();
    port.post(8);
    port.nic.plug(false, &mut port.host);
    let loopback = phy::CR_LOOPBACK | phy::CR_FULL_DUPLEX | phy::CR_SPEED_1000;
    port.write(regs::MDIC, mdic::write(phy::CONTROL, loopback));
    port.later(1_000_000_000);
    assert_ne!(port.read(regs::STATUS) & status::LU, 0);
    port.send(&segment(&[3; 200]), Data::default());
    assert!(port.host.frames.is_empty());
    assert!(rx::is_done(port.get(RX_RING + 8)));
    // Nothing comes from outside meanwhile.
    port.nic.receive(&segment(&[3; 200]), &mut port.host);
    assert!(!rx::is_done(port.get(RX_RING + 16 + 8)));
}
