// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rate limits of TX queues. QEMU's model has none, and takes no notice of their registers.

use std::time::Duration;

use cases::{Ability, Captured, Family, Result, Testbed, captured};
use vm::Wire;

const MIB: u64 = 1 << 20;
/// In Mb/s: MIB takes 420 ms.
const RATE: u64 = 20;
/// Of two processors.
const QUEUES: u32 = 2;

/// In how long these frames were captured, and how many bytes they have.
fn taken(frames: &[Captured]) -> (Duration, u64) {
    let took = frames.last().zip(frames.first());
    let took = took.map_or(Duration::ZERO, |(last, first)| last.time - first.time);
    (
        took,
        frames.iter().map(|frame| u64::from(frame.length)).sum(),
    )
}

#[test]
fn a_queue_sends_no_faster_than_its_limit_which_outlives_a_reset_of_the_device() -> Result {
    let bed = Testbed::options()
        .needs([Ability::TxMaxRate])
        .needs_kernel(["SUSPEND"])
        .boot("tx-rate")?;
    // The kernel chooses the queue by the flow.
    let limit = |rate: u64| -> Result {
        for queue in 0..QUEUES {
            bed.set_tx_queue(bed.local.interface, queue, "tx_maxrate", rate.to_string())?;
        }
        Ok(())
    };
    let sent = || -> Result<Vec<_>> {
        let mut frames = captured(&bed.guest.pcap(Wire(0)))?;
        frames.retain(|frame| frame.from == bed.local.mac());
        Ok(frames)
    };
    let send = || -> Result<(Duration, u64)> {
        let before = sent()?.len();
        bed.transfer(bed.local, bed.peer, Family::V4, MIB)?;
        Ok(taken(&sent()?[before..]))
    };
    // A tenth for when frames were captured: the wire has no clock of its own.
    let takes_its_time = |(took, bytes): (Duration, u64)| {
        assert!(bytes > MIB, "{bytes}");
        let least = Duration::from_micros(bytes * 8 / RATE) * 9 / 10;
        assert!(took > least, "{bytes} in {took:?}, not {least:?}");
    };
    limit(RATE)?;
    takes_its_time(send()?);
    bed.sleep_and_wake()?;
    bed.wait_carrier(true)?;
    takes_its_time(send()?);

    limit(0)?;
    let (took, _) = send()?;
    println!("without a limit: {took:?}");
    bed.finish()
}
