// SPDX-License-Identifier: MIT OR Apache-2.0

//! The root port above the NIC reports errors (Advanced Error Reporting): the kernel resets the
//! link and the devices below it, and traffic resumes.

use cases::{Result, Testbed};

const MIB: u64 = 1 << 20;

/// The interrupt interval of vector 1: of all resets, only a bus reset clears it.
const EITR_1: u32 = 0x1684;

/// A testbed whose log may have what the kernel says of the errors.
fn testbed(name: &str) -> Result<Testbed> {
    let options = Testbed::options()
        .needs_kernel(["PCIEAER"])
        .mtu(9000)
        .header_split();
    let bed = options.native_ports().boot(name)?;
    bed.steer(bed.local, &[1])?;
    bed.show_whole_log()?;
    for complaint in ["AER: ", "PCIe Bus Error", "error status/mask"] {
        bed.guest.allow_log(&[complaint]);
    }
    Ok(bed)
}

/// Injects an error under traffic with a bound queue.
fn recovers_from(error: &str, name: &str) -> Result {
    let bed = testbed(name)?;
    let flows = bed.both_ways(MIB)?;
    let before = bed.link_stats(bed.local)?;
    let interval = || bed.read_register(bed.local, EITR_1);
    let set = interval()?;
    assert_ne!(set, 0);

    bed.inject_bus_error(bed.local, error)?;
    bed.wait_logged("device recovery successful", 1)?;
    bed.wait_carrier(true)?;
    assert_eq!(interval()?, set, "the interval of interrupts");

    let after = bed.link_stats(bed.local)?;
    assert!(
        after.rx_packets >= before.rx_packets && after.tx_packets >= before.tx_packets,
        "counters do not go back: {before:?} then {after:?}"
    );
    let [rx, tx] = [after.rx_packets, after.tx_packets];
    bed.wait_until(1000, || {
        let now = bed.link_stats(bed.local)?;
        Ok((now.rx_packets - rx).min(now.tx_packets - tx))
    })?;
    flows.finish()?;
    bed.finish()
}

#[test]
fn a_nic_goes_on_with_a_bound_queue_after_a_nonfatal_bus_error() -> Result {
    recovers_from("COMP_ABORT", "bus-error-nonfatal")
}

#[test]
fn a_nic_goes_on_with_a_bound_queue_after_a_fatal_bus_error() -> Result {
    recovers_from("DLP", "bus-error-fatal")
}

#[test]
fn a_correctable_bus_error_changes_nothing() -> Result {
    let bed = testbed("bus-error-correctable")?;
    let flows = bed.both_ways(MIB)?;

    bed.inject_bus_error(bed.local, "RCVR")?;
    bed.wait_logged("Correctable Error message received", 1)?;

    let before = bed.link_stats(bed.local)?;
    bed.wait_until(before.rx_packets + 1000, || {
        Ok(bed.link_stats(bed.local)?.rx_packets)
    })?;
    assert!(!bed.guest.console_text().contains("device recovery"));
    flows.finish()?;
    bed.finish()
}
