// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs come and go, and the rings change with them.

use cases::{Ability, Family, Result, Testbed, finish};
use protocol::{XdpAction, kernel::UnloadModule};

use crate::{MIB, OURS, attach, detach, for_all, frame, ping, program, runs, runs_again};

#[test]
fn programs_come_and_go_under_traffic_and_stay_while_the_interface_is_down() -> Result {
    let bed = Testbed::options()
        .needs([Ability::ByteQueueLimits, Ability::Xdp])
        .needs_counters(["rx_xdp_tx"])
        .boot("xdp-changes")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let mut wanted = 0;

    for _ in 0..3 {
        // New rings, then the same ones with another program, then none.
        for action in [XdpAction::Pass, XdpAction::Transmit, XdpAction::Drop] {
            let all = action == XdpAction::Pass;
            attach(
                &bed,
                if all {
                    for_all(action)
                } else {
                    program(action)
                },
            )?;
            wanted = sink.wait_bytes(wanted + MIB)?;
            if all {
                runs_again(&bed)?;
            } else {
                assert_eq!(runs(&bed)?, 0, "none of it is for this program");
            }
        }
        detach(&bed)?;
        wanted = sink.wait_bytes(wanted + MIB)?;
    }

    // New rings for other reasons; each has the program.
    attach(&bed, for_all(XdpAction::Pass))?;
    for descriptors in [64, 4096, 1024] {
        bed.set_receive_ring(bed.local, descriptors)?;
        wanted = sink.wait_bytes(wanted + MIB)?;
        runs_again(&bed)?;
    }
    finish(source, sink)?;

    // Down and up; and changes while it is down.
    bed.down_and_up(bed.local)?;
    bed.wait_carrier(true)?;
    let before = runs(&bed)?;
    ping(&bed, 1000)?;
    assert!(runs(&bed)? >= before + 2);
    bed.set_interface(bed.local, false)?;
    detach(&bed)?;
    attach(&bed, program(XdpAction::Transmit))?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;

    // XDP_TX shares its ring with the stack, whose accounting stays right.
    let stream = bed.stream(bed.local, bed.peer, Family::V6);
    let sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let back = || bed.statistic(bed.local, "rx_xdp_tx");
    let before = back()?;
    let mut seed = 0;
    bed.wait_until(before + 50, || {
        // Under this load the ring may be full, so only some of them come back.
        let frames = (0..40).map(|n| frame(&bed, OURS, seed + n, 1000)).collect();
        bed.exchange(frames, bed.peer, OURS, 1)?;
        seed += 1;
        back()
    })?;
    finish(source, sink)?;
    bed.wait_all_sent(bed.local.interface, 0..2)?;

    // Unload the driver with a program attached.
    bed.guest.call(UnloadModule::new(bed.driver()))?;
    bed.finish()
}
