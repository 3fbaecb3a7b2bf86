// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tokens: a receiver that keeps them starves, and resumes when it returns them.

use std::time::Duration;

use cases::{Family, Result, Testbed};
use protocol::{Command, Release, netdev::QueueKind};

const MIB: u64 = 1 << 20;

/// How long to wait for events before checking again.
const PAUSE: Duration = Duration::from_millis(200);

#[test]
fn a_receiver_that_keeps_its_tokens_stalls_and_goes_on_when_it_returns_them() -> Result {
    let bytes = 24 * MIB;
    let bed = Testbed::devmem_options()
        .needs_counters(["rx_starved"])
        .boot_steered("tokens-kept")?;
    // Nothing is sent on the bound queue's pair: TX completions would get it polled.
    bed.set_tx_queue(bed.local.interface, 0, "xps_cpus", "3")?;

    // More payload than the dma-buf has room for.
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Never)?;
    let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?;

    // It stalls: the pool is empty and nothing is returned.
    let mut starved = 0;
    while starved == 0 {
        let event = sink.next_event(PAUSE)?;
        assert!(!sink.ended(), "the receiver ended: {event:?}");
        starved = bed.statistic(bed.local, "rx_starved")?;
    }
    assert!(
        bed.net_iovs_outstanding(bed.local)? > 0,
        "the receiver holds net_iovs"
    );

    // Soon no packet fits any more and no interrupt arrives: the queue polls for memory by itself,
    // more often than packets make it.
    let counts = || -> Result<_> {
        let starved = bed.statistic(bed.local, "rx_starved")?;
        let packets = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?[1];
        Ok((starved, packets))
    };
    let before = counts()?;
    bed.wait_until(20, || {
        let now = counts()?;
        Ok((now.0 - before.0).saturating_sub(now.1 - before.1))
    })?;

    // It resumes whenever tokens are returned, until everything has arrived. Each release checks
    // what was kept: no net_iov was reused meanwhile.
    while !sink.ended() {
        sink.tell(Command::ReleaseAll)?;
        while sink.next_event(PAUSE)?.is_some() {}
    }
    let report = sink.join()?;
    let source = source.join()?;
    assert_eq!(
        (
            report.bytes,
            report.linear_bytes,
            report.mismatch,
            report.error.clone()
        ),
        (bytes, 0, None, None),
        "{report:?} {source:?}"
    );
    assert!(source.delivered, "{source:?}");
    bed.finish()
}
