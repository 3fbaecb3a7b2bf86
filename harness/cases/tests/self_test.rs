// SPDX-License-Identifier: MIT OR Apache-2.0

//! The NIC's own tests (`ethtool -t`). Linux's `igb` has what it sends come back from the PHY, rigb from the MAC.

use cases::{Ability, Driver, Family, Result, Testbed};

const MIB: u64 = 1 << 20;

#[test]
fn a_nic_passes_its_own_tests_and_traffic_passes_it_again() -> Result {
    let bed = Testbed::options()
        .needs([Ability::SelfTest])
        .boot("self-test")?;
    if bed.driver() == Driver::Igb.name() {
        // Its offline test may take longer than the kernel's watchdog waits for a TX queue.
        bed.guest.allow_log(&["NETDEV WATCHDOG"]);
    }
    bed.test_offline(bed.local)?;
    bed.wait_carrier(true)?;
    for (from, to) in [(bed.peer, bed.local), (bed.local, bed.peer)] {
        bed.transfer(from, to, Family::V4, MIB)?;
    }
    bed.finish()
}
