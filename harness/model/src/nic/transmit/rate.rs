// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rate limits of queues (82576 datasheet, chapter "Transmit Rate Scheduler", which wasn't at hand; Linux's
//! `igb_set_vf_rate_limit()`). A frame counts with its check sequence, and without what is between frames.

use i82576::{
    limits::{FRAME_CHECK, MAX_TX_QUEUES},
    regs::{RTTBCNRM, RTTDQSEL, rttbcnrc},
};

use crate::nic::registers::Registers;

/// RTTBCNRM: the window, in KiB.
const WINDOW: u32 = 0x3ff;

/// A queue's limit.
#[derive(Debug, Default, Clone, Copy)]
struct Rate {
    /// RTTBCNRC.
    control: u32,
    /// When its next frame may begin.
    next: u64,
    /// There is one that waits for that.
    waits: bool,
}

/// The limits of all queues.
#[derive(Debug, Default)]
pub(crate) struct Rates([Rate; MAX_TX_QUEUES as usize]);

impl Rates {
    /// Sets the limit of the queue that is selected. Returns which.
    pub(crate) fn set(&mut self, registers: &Registers, control: u32, now: u64) -> u16 {
        // CAST: It is less than there are.
        let queue = (registers.get(RTTDQSEL) % u32::from(MAX_TX_QUEUES)) as u16;
        self.0[usize::from(queue)] = Rate {
            control,
            next: now,
            waits: false,
        };
        queue
    }

    /// Whether a queue's next frame must wait. It is due later then.
    pub(crate) fn holds(&mut self, queue: u16, now: u64) -> bool {
        let rate = &mut self.0[usize::from(queue)];
        rate.waits = now < rate.next;
        rate.waits
    }

    /// A queue has sent a frame, which takes so long for each byte on the wire, in nanoseconds.
    pub(crate) fn sent(
        &mut self,
        queue: u16,
        frame: &[u8],
        registers: &Registers,
        per_byte: u64,
        now: u64,
    ) {
        let rate = &mut self.0[usize::from(queue)];
        let Some(factor) = rttbcnrc::factor(rate.control) else {
            return;
        };
        let takes = |bytes: u64| (bytes * per_byte * u64::from(factor)) >> rttbcnrc::FRACTION_BITS;
        let window = u64::from(registers.get(RTTBCNRM) & WINDOW) * 1024;
        let from = rate.next.max(now.saturating_sub(takes(window)));
        rate.next = from + takes(frame.len() as u64 + u64::from(FRAME_CHECK));
    }

    /// When the first of those that wait is due.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let waiting = self.0.iter().filter(|rate| rate.waits);
        waiting.map(|rate| rate.next).min()
    }

    /// A queue that is due, which waits no more.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<u16> {
        let (queue, rate) = (0..)
            .zip(&mut self.0)
            .find(|(_, rate)| rate.waits && rate.next <= now)?;
        rate.waits = false;
        Some(queue)
    }
}
