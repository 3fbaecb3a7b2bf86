// SPDX-License-Identifier: MIT OR Apache-2.0

//! The guest sleeps, and goes on when it wakes up.

use cases::{Family, Result, Testbed};

const MIB: u64 = 1 << 20;

#[test]
fn a_guest_that_slept_goes_on_with_a_bound_queue_and_its_traffic() -> Result {
    let bed = Testbed::devmem("sleep")?;
    let flows = bed.both_ways(MIB)?;
    let before = bed.link_stats(bed.local)?;

    bed.sleep_and_wake()?;
    bed.wait_carrier(true)?;

    let after = bed.link_stats(bed.local)?;
    assert!(
        after.rx_packets >= before.rx_packets && after.tx_packets >= before.tx_packets,
        "counters do not go back: {before:?} then {after:?}"
    );
    assert_eq!(after.rx_missed_errors, before.rx_missed_errors);
    let [rx, tx] = [after.rx_packets, after.tx_packets];
    bed.wait_until(1000, || {
        let now = bed.link_stats(bed.local)?;
        Ok((now.rx_packets - rx).min(now.tx_packets - tx))
    })?;
    flows.finish()?;
    bed.finish()?;
    Ok(())
}

#[test]
fn an_interface_that_was_down_while_the_guest_slept_can_be_brought_up() -> Result {
    let bed = Testbed::devmem("sleep-down")?;
    bed.set_interface(bed.local, false)?;
    bed.sleep_and_wake()?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    for family in Family::BOTH {
        bed.stream(bed.peer, bed.local, family)
            .transfer(&bed, MIB, &[64 << 10])?;
    }
    bed.finish()?;
    Ok(())
}
