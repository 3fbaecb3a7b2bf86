// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rate limits, by what has been sent in any span of time.

use i82576::{
    limits::FRAME_CHECK,
    regs::{RTTBCNRM, RTTDQSEL, rttbcnrc},
};

use super::*;
use crate::nic::transmit::Rates;

const QUEUE: u16 = 3;

/// A queue with a limit in Mb/s, on a link of `link` Mb/s.
struct Paced {
    rates: Rates,
    registers: Registers,
    per_byte: u64,
    now: u64,
}

impl Paced {
    fn new(link: u32, rate: u32, window: u32) -> Self {
        let mut registers = Registers::default();
        registers.set(RTTDQSEL, QUEUE.into());
        registers.set(RTTBCNRM, window);
        let mut rates = Rates::default();
        let control = rttbcnrc::encode(link, rate);
        assert_eq!(rates.set(&registers, control, 0), QUEUE);
        Self {
            rates,
            registers,
            per_byte: u64::from(8000 / link),
            now: 0,
        }
    }

    /// Sends a frame if it may be. Returns its bytes on the wire.
    fn send(&mut self, len: usize) -> Option<u64> {
        if self.rates.holds(QUEUE, self.now) {
            return None;
        }
        let frame = vec![0; len];
        let (registers, now) = (&self.registers, self.now);
        self.rates
            .sent(QUEUE, &frame, registers, self.per_byte, now);
        Some(len as u64 + u64::from(FRAME_CHECK))
    }
}

proptest! {
    /// However late the device looks, a queue never sends more than its rate allows, but for the window and
    /// a frame; and if it looks at each deadline, no less.
    #[test]
    fn no_span_of_time_has_more_than_the_rate_allows_nor_has_the_whole_less(
        link in prop::sample::select(&[100u32, 1000][..]),
        share in 1u32..100,
        window in 0u32..0x20,
        frames in vec((60usize..9018, prop::option::of(0u64..2_000_000)), 1..200),
    ) {
        let rate = (link * share / 100).max(1);
        let mut paced = Paced::new(link, rate, window);
        let (mut sent, mut late, mut total) = (Vec::new(), 0, 0);
        for (len, pause) in frames {
            let before = paced.now;
            loop {
                if let Some(bytes) = paced.send(len) {
                    sent.push((paced.now, bytes));
                    total += bytes;
                    break;
                }
                let due = paced.rates.deadline().unwrap();
                prop_assert!(due > paced.now);
                paced.now = due;
                prop_assert_eq!(paced.rates.take_due(due), Some(QUEUE));
                prop_assert_eq!(paced.rates.deadline(), None);
            }
            prop_assert!(pause.is_some() || paced.now >= before);
            paced.now += pause.unwrap_or(0);
            late += pause.unwrap_or(0);
        }
        // The factor is rounded down, by less than one in 2^14, and each span to a nanosecond.
        let most = |span: u64| span * u64::from(rate) / 8000 * 1001 / 1000 + 10;
        let longest = sent.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        for (nth, (from, _)) in sent.iter().enumerate() {
            let mut bytes = 0;
            for (at, size) in &sent[nth..] {
                bytes += size;
                let allowed = most(at - from) + u64::from(window) * 1024 + 2 * longest;
                prop_assert!(bytes <= allowed, "{bytes} of {allowed} in {} ns", at - from);
            }
        }
        let busy = total * 8000 / u64::from(rate);
        prop_assert!(paced.now <= busy + late + 10);
    }
}

#[test]
fn without_a_limit_nothing_waits_and_other_queues_never_do() {
    for rate in [0, 1000, 5000] {
        let mut paced = Paced::new(1000, rate, 0);
        for _ in 0..3 {
            assert_eq!(paced.send(1514), Some(1518), "{rate}");
        }
        assert_eq!(paced.rates.deadline(), None);
    }
    let mut paced = Paced::new(1000, 1, 0);
    assert!(paced.send(1514).is_some() && paced.send(1514).is_none());
    assert!(!paced.rates.holds(QUEUE + 1, paced.now));
}
