// SPDX-License-Identifier: MIT OR Apache-2.0

//! Header split and programs that do not know of fragments exclude each other.

use std::fmt::Display;

use cases::{Ability, Refusal, Result, Testbed, assert_refused};
use libc::{EBUSY, EEXIST, EINVAL};
use protocol::{Memory, XdpAction, rings::TcpDataSplit};

use crate::{MIB, OURS, attach, detach, exchange, frames, ping, program, runs, with_fragments};

/// The errno and the text of a refusal.
fn refused<E: Refusal + Display>(result: std::result::Result<(), E>) -> (Option<i32>, String) {
    match result {
        Ok(()) => panic!("it was not refused"),
        Err(error) => (error.errno(), error.to_string()),
    }
}

#[test]
fn header_split_and_programs_without_fragments_exclude_each_other() -> Result {
    let bed = Testbed::options()
        .needs([Ability::HeaderSplit, Ability::Xdp])
        .boot("xdp-header-split")?;
    let split = |split| bed.set_header_split(bed.local, split);

    // The core refuses either beside the other.
    split(TcpDataSplit::On)?;
    let (errno, text) = refused(attach(&bed, program(XdpAction::Pass)));
    assert_eq!(errno, Some(EBUSY), "{text}");
    assert!(text.contains("tcp-data-split"), "{text}");
    ping(&bed, 1000)?;

    // "Driver's default" means off, and is no obstacle.
    split(TcpDataSplit::Auto)?;
    attach(&bed, program(XdpAction::Pass))?;
    let (errno, text) = refused(split(TcpDataSplit::On));
    assert_eq!(errno, Some(EINVAL), "{text}");
    assert!(text.contains("XDP"), "{text}");
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
        let (errno, text) = refused(attach(&bed, program));
        assert_eq!(errno, Some(EBUSY), "{text}");
    }
    bound.stop()?;
    split(TcpDataSplit::Off)?;
    attach(&bed, program(XdpAction::Pass))?;
    ping(&bed, 1000)?;
    bed.finish()
}
