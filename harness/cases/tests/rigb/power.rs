// SPDX-License-Identifier: MIT OR Apache-2.0

//! The guest suspends and resumes, or is shut down.

use cases::{Result, Testbed};

const MIB: u64 = 1 << 20;

/// Registers of the 82576 (datasheet, 8.1.3), and the bits that enable what they control.
const RCTL: u32 = 0x0100;
const TCTL: u32 = 0x0400;
const EN: u32 = 1 << 1;
const RXDCTL_1: u32 = 0xc068;
const TXDCTL_1: u32 = 0xe068;
const QUEUE_ENABLE: u32 = 1 << 25;

#[test]
fn a_guest_that_slept_goes_on_with_a_bound_queue_and_its_traffic() -> Result {
    let bed = Testbed::devmem_options()
        .needs_kernel(["SUSPEND"])
        .boot_steered("sleep")?;
    let flows = bed.both_ways(MIB)?;
    let before = bed.link_stats(bed.local)?;

    bed.sleep_and_wake()?;
    bed.wait_carrier(true)?;

    let after = bed.link_stats(bed.local)?;
    assert!(
        after.rx_packets >= before.rx_packets && after.tx_packets >= before.tx_packets,
        "counters do not go back: {before:?} then {after:?}"
    );
    // Frames may be missed before the sleep, but no more than were sent.
    let sent = bed.link_stats(bed.peer)?.tx_packets;
    assert!(
        (before.rx_missed_errors..=sent).contains(&after.rx_missed_errors),
        "of {sent} frames sent: {before:?} then {after:?}"
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
fn an_interface_that_was_down_while_the_guest_slept_can_be_brought_up() -> Result {
    let bed = Testbed::devmem_options()
        .needs_kernel(["SUSPEND"])
        .boot_steered("sleep-down")?;
    bed.set_interface(bed.local, false)?;
    bed.sleep_and_wake()?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    bed.transfer_over_both(bed.peer, bed.local, MIB)?;
    bed.finish()
}

// As before a reboot or kexec: the kernel shuts devices down in the same way.
#[test]
fn a_guest_that_is_turned_off_under_traffic_leaves_its_nic_quiet() -> Result {
    let bed = Testbed::devmem("shutdown")?;
    // The flows run until the power is off.
    let _flows = bed.both_ways(MIB)?;
    let enabled = [
        (RCTL, EN),
        (TCTL, EN),
        (RXDCTL_1, QUEUE_ENABLE),
        (TXDCTL_1, QUEUE_ENABLE),
    ];
    for (offset, bit) in enabled {
        let value = bed.read_register(bed.local, offset)?;
        assert_ne!(
            value & bit,
            0,
            "register {offset:#x} is {value:#x} under traffic"
        );
    }

    let offsets = enabled.map(|(offset, _)| offset);
    let local = bed.local;
    for ((offset, bit), value) in enabled
        .into_iter()
        .zip(bed.finish_and_read(local, offsets)?)
    {
        assert_eq!(
            value & bit,
            0,
            "register {offset:#x} is {value:#x} after shutdown"
        );
    }
    Ok(())
}
