// SPDX-License-Identifier: MIT OR Apache-2.0

//! Asks the other side for silence while the packet buffer is nearly full (82576 datasheet, "Flow
//! Control"; IEEE 802.3, annex 31B).

use i82576::regs::{
    CTRL, FCRTH, FCRTL, FCRTV, FCT, FCTTV, XOFFTXC, XONTXC, ctrl,
    fc::{ADDRESS_HIGH, ADDRESS_LOW, XONE},
};

use crate::{
    Host,
    nic::{Nic, statistics},
};

/// The threshold in FCRTH and FCRTL, in bytes.
const BYTES: u32 = 0x1_fff0;
const PAUSE: [u8; 2] = [0, 1];
/// When it asks again where the threshold of FCRTV leaves no time for that.
const NEVER: u64 = u64::MAX;
/// Bytes of a frame without its check sequence at least.
const SHORTEST: usize = 60;

impl Nic {
    /// Sends a pause frame if the packet buffer's use calls for one.
    pub(in crate::nic) fn control_flow(&mut self, host: &mut dyn Host) {
        let threshold = |reg| self.registers.get(reg) & BYTES;
        let (high, low) = (threshold(FCRTH), threshold(FCRTL));
        let used = u32::try_from(self.waiting_bytes()).unwrap_or(u32::MAX);
        let wanted = self.registers.has(CTRL, ctrl::TFCE) && self.link_is_up();
        match self.silence {
            _ if !wanted => self.silence = None,
            Some(refresh) if refresh > self.now && used >= low => {}
            Some(_) if used < low => {
                self.silence = None;
                if self.registers.has(FCRTL, XONE) {
                    self.send_pause(0, host);
                    statistics::count(&mut self.registers, XONTXC, 1);
                }
            }
            None if used < high => {}
            _ => {
                // CAST: The other half is reserved.
                let time = self.registers.get(FCTTV) as u16;
                let refresh = time.saturating_sub(self.registers.get(FCRTV) as u16);
                self.silence = Some(match refresh {
                    // It would ask again at the same moment, for ever.
                    0 => NEVER,
                    // At 1000 Mb/s, a bit takes a nanosecond.
                    _ => self.now + u64::from(refresh) * 512,
                });
                self.send_pause(time, host);
                statistics::count(&mut self.registers, XOFFTXC, 1);
            }
        }
    }

    fn send_pause(&self, time: u16, host: &mut dyn Host) {
        let [low, high] = [ADDRESS_LOW, ADDRESS_HIGH].map(u32::to_le_bytes);
        let kind = self.registers.get(FCT) as u16;
        let mut frame = [&low[..], &high[..2], &self.nvm.mac()].concat();
        for field in [kind.to_be_bytes(), PAUSE, time.to_be_bytes()] {
            frame.extend(field);
        }
        frame.resize(SHORTEST, 0);
        host.send(frame);
    }
}
