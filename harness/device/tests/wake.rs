// SPDX-License-Identifier: MIT OR Apache-2.0

//! A NIC in D3: it does nothing, until a frame comes that wakes it.

mod common;

use std::{
    thread,
    time::{Duration, Instant},
};

use common::Board;
use device::{link::Link, wire};
use i82576::regs::{self, ctrl, mdic, phy, status, wuc, wufc};
use model::nic::Nic;

const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 7];
/// PMCSR, its state, and its bits.
const POWER: u64 = 0x44;
const D3: u32 = 3;
const PME_ENABLE: u32 = 1 << 8;
const PME_STATUS: u32 = 1 << 15;
const PATIENCE: Duration = Duration::from_secs(20);

fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_magic_packet_and_no_other_wakes_a_nic_that_is_in_d3() {
    let (mut nic, mut other) = (Board::of(Nic::new(MAC)), Board::new());
    wire::connect([&nic.port, &other.port], &Link::default(), None).unwrap();
    other.enable();
    nic.enable();
    nic.set_register(regs::CTRL.0, ctrl::SLU);
    nic.set_register(regs::MDIC.0, mdic::write(phy::CONTROL, phy::CR_AUTONEG));
    until(|| nic.register(regs::STATUS.0) & status::LU != 0);
    nic.set_register(regs::RCTL.0, regs::rctl::EN);
    nic.set_register(regs::WUC.0, wuc::PME_EN);
    nic.set_register(regs::WUFC.0, wufc::MAG);

    let magic = [&MAC[..], &[2; 6], &[8, 0x42], &[0xff; 6], &MAC.repeat(16)].concat();
    // While it works, it is nothing to it.
    other.send(&magic);
    assert_eq!(nic.register(regs::WUS.0), 0);
    nic.set_config(POWER, D3 | PME_ENABLE);
    assert_eq!(nic.register(regs::WUS.0), u32::MAX, "it does not answer");
    other.send(&magic[..60]);
    other.register(0);
    assert_eq!(nic.config(POWER), D3 | PME_ENABLE);
    other.send(&magic);
    until(|| nic.config(POWER) == D3 | PME_ENABLE | PME_STATUS);

    // It says so until that is cleared.
    nic.set_config(POWER, PME_ENABLE);
    assert_eq!(nic.config(POWER), PME_ENABLE | PME_STATUS);
    nic.enable();
    assert_eq!(nic.register(regs::WUS.0), wufc::MAG);
    assert_eq!(nic.register(regs::WUPL.0), magic.len() as u32);
    nic.set_config(POWER, PME_STATUS);
    assert_eq!(nic.config(POWER), 0);
}
