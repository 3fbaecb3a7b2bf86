// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs see frames whose headers are split from their payload, which is in fragments.

use cases::{Ability, Family, Result, Testbed, finish};
use protocol::{XdpAction, rings::TcpDataSplit};

use crate::{
    MIB, actions::programs_do_what_they_want, attach, detach, for_all, runs, runs_again,
    with_fragments,
};

#[test]
fn programs_for_fragments_do_what_they_want_while_headers_are_split() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Xdp])
        .header_split()
        .boot("xdp-fragments")?;
    programs_do_what_they_want(&bed, 1500, true)?;
    for station in bed.stations() {
        bed.set_mtu(station, 9216)?;
    }
    programs_do_what_they_want(&bed, 9216, true)?;
    bed.set_interface(bed.local, false)?;
    bed.wait_pools_gone(bed.local)?;
    bed.finish()
}

#[test]
fn tcp_passes_programs_for_fragments() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Xdp])
        .needs_counters(["rx_split"])
        .mtu(9000)
        .header_split()
        .boot("xdp-fragments-tcp")?;
    let pass = || with_fragments(for_all(XdpAction::Pass));
    let on_the_other_cpu = || with_fragments(for_all(XdpAction::RedirectToCpu(1)));
    for program in [pass(), on_the_other_cpu()] {
        attach(&bed, program)?;
        for family in Family::BOTH {
            let before = (runs(&bed)?, bed.statistic(bed.local, "rx_split")?);
            bed.transfer(bed.peer, bed.local, family, 4 * MIB)?;
            let after = (runs(&bed)?, bed.statistic(bed.local, "rx_split")?);
            let least = 4 * MIB / 9000;
            assert!(
                after.0 > before.0 + least,
                "{after:?} frames for the program, and split, after {before:?}"
            );
        }
    }
    assert_eq!(bed.statistic(bed.local, "rx_xdp_failed")?, 0);

    // Each change finds frames of which only a part has come in.
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let mut wanted = 0;
    for _ in 0..3 {
        detach(&bed)?;
        wanted = sink.wait_bytes(wanted + MIB)?;
        attach(&bed, pass())?;
        wanted = sink.wait_bytes(wanted + MIB)?;
        runs_again(&bed)?;
        for split in [TcpDataSplit::Off, TcpDataSplit::On] {
            bed.set_header_split(bed.local, split)?;
            wanted = sink.wait_bytes(wanted + MIB)?;
            runs_again(&bed)?;
        }
    }
    finish(source, sink)?;
    bed.set_interface(bed.local, false)?;
    bed.wait_pools_gone(bed.local)?;
    bed.finish()
}
