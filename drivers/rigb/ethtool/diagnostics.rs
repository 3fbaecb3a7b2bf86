// SPDX-License-Identifier: GPL-2.0

//! Diagnostics: register dump, port identification, and the message level. The tests
//! are in [`super::self_test`].

use i82576::regs::{
    self,
    Reg, //
};
use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        Identify,
        Light,
        MessageLevel,
        Registers,
        SelfTest,
        WakeEvents,
        WakeOnLan, //
    },
};

use super::self_test;
use crate::netdev::{
    Adapter,
    Control, //
};

/// Registers of the device as a whole that reading does not change.
const GLOBAL: [Reg; 39] = [
    regs::CTRL,
    regs::STATUS,
    regs::CTRL_EXT,
    regs::EECD,
    regs::MDIC,
    regs::LEDCTL,
    regs::FCAL,
    regs::FCAH,
    regs::FCT,
    regs::FCTTV,
    regs::FCRTL,
    regs::FCRTH,
    regs::FCRTV,
    regs::VET,
    regs::RCTL,
    regs::TCTL,
    regs::TCTL_EXT,
    regs::TIPG,
    regs::RXPBS,
    regs::TXPBS,
    regs::DTXCTL,
    regs::RXCSUM,
    regs::RLPML,
    regs::RFCTL,
    regs::MRQC,
    regs::VT_CTL,
    regs::WUC,
    regs::WUFC,
    regs::MANC,
    regs::GCR,
    regs::FWSM,
    regs::IMS,
    regs::GPIE,
    regs::EIMS,
    regs::EIAC,
    regs::EIAM,
    regs::IVAR_MISC,
    regs::ral(0),
    regs::rah(0),
];

/// Registers of each queue.
const QUEUE: [fn(u16) -> Reg; 15] = [
    regs::srrctl,
    regs::rdbal,
    regs::rdbah,
    regs::rdlen,
    regs::rdh,
    regs::rdt,
    regs::rxdctl,
    regs::psrtype,
    regs::tdbal,
    regs::tdbah,
    regs::tdlen,
    regs::tdh,
    regs::tdt,
    regs::txdctl,
    // Of the vector with the queue's number.
    regs::eitr,
];

/// Queues whose registers are dumped: all.
const QUEUES: usize = i82576::limits::MAX_RX_QUEUES as usize;

/// The registers of a dump, in its order.
fn dump() -> impl Iterator<Item = Reg> {
    // CAST: There are 16 queues.
    let queues = (0..QUEUES as u16).flat_map(|queue| QUEUE.map(|register| register(queue)));

    Iterator::chain(GLOBAL.into_iter(), queues)
}

impl<'bound> Registers for Adapter<'bound> {
    const REGISTERS_VERSION: u32 = 2;
    const REGISTERS: usize = GLOBAL.len() + QUEUES * QUEUE.len();

    fn registers(dev: Locked<'_, Self>, _control: &mut Control, out: &mut [u32]) {
        let hw = &dev.device().driver().hw;

        for (to, register) in out.iter_mut().zip(dump()) {
            *to = hw.read(register);
        }
    }
}

impl<'bound> SelfTest for Adapter<'bound> {
    const TESTS: &'static [&'static CStr] = &self_test::NAMES;

    fn self_test(
        dev: Locked<'_, Self>,
        control: &mut Control,
        offline: bool,
        results: &mut [u64],
    ) -> Result {
        self_test::run(dev, control, offline, results)
    }
}

impl<'bound> Identify for Adapter<'bound> {
    fn set_light(dev: Locked<'_, Self>, control: &mut Control, light: Light) {
        let hw = &dev.device().driver().hw;

        match light {
            Light::Begin => control.saved_lights = hw.lights(),
            Light::On => hw.set_lights(true),
            Light::Off => hw.set_lights(false),
            Light::End => hw.restore_lights(control.saved_lights),
        }
    }
}

#[vtable]
impl<'bound> WakeOnLan for Adapter<'bound> {
    /// The driver does not support wake-on-LAN.
    fn wake_on_lan(_control: &Control) -> WakeEvents {
        WakeEvents::default()
    }
}

impl<'bound> MessageLevel for Adapter<'bound> {
    fn message_level(&self) -> u32 {
        self.link.msg_enable()
    }

    fn set_message_level(&self, level: u32) {
        self.link.set_msg_enable(level);
    }
}
