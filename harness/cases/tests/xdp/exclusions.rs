// SPDX-License-Identifier: MIT OR Apache-2.0

//! Header split and programs that do not know of fragments exclude each other.

use cases::{Ability, Result, Testbed, assert_refused, assert_refused_saying};
use libc::{EBUSY, EEXIST, EINVAL};
use protocol::{Memory, XdpAction, rings::TcpDataSplit};

use crate::{MIB, OURS, attach, detach, exchange, frames, ping, program, runs, with_fragments};

#[test]
fn header_split_and_programs_without_fragments_exclude_each_other() -> Result {
    let bed = Testbed::options()
        .needs([Ability::HeaderSplit, Ability::Xdp])
        .boot("xdp-header-split")?;
    let split = |split| bed.set_header_split(bed.local, split);

    // The core refuses either beside the other.
    split(TcpDataSplit::On)?;
    let attached = attach(&bed, program(XdpAction::Pass));
    assert_refused_saying(attached, EBUSY, "tcp-data-split");
    ping(&bed, 1000)?;

    // "Driver's default" means off, and is no obstacle.
    split(TcpDataSplit::Auto)?;
    attach(&bed, program(XdpAction::Pass))?;
    assert_refused_saying(split(TcpDataSplit::On), EINVAL, "XDP");
    split(TcpDataSplit::Off)?;
    exchange(&bed, frames(&bed, 1500), bed.local, OURS)?;
    assert!(runs(&bed)? > 0, "the program goes on");

    // Device memory needs header split, and no program, which could not read it.
    let bind = || bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB);
    let knows = || with_fragments(program(XdpAction::Pass));
    // Header split is off, and netdev_nl_bind_rx_doit() wants it on.
    assert_refused(bind(), EINVAL, "device memory beside a program");
    attach(&bed, knows())?;
    split(TcpDataSplit::On)?;
    assert_refused(
        bind(),
        EEXIST,
        "device memory beside a program for fragments",
    );
    detach(&bed)?;
    let bound = bind()?;
    for program in [program(XdpAction::Pass), knows()] {
        assert_refused(attach(&bed, program), EBUSY, "a program beside a binding");
    }
    bound.stop()?;
    split(TcpDataSplit::Off)?;
    attach(&bed, program(XdpAction::Pass))?;
    ping(&bed, 1000)?;
    bed.finish()
}
