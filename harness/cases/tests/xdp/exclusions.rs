// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs and header split exclude each other.

use cases::{Result, Testbed, assert_refused};
use protocol::{
    Memory, XdpAction, XdpProgram,
    rings::{DataSplit, SetRings},
};

use crate::{MIB, OURS, attach, detach, exchange, frames, ping, program, runs};

const EBUSY: i32 = 16;
const EINVAL: i32 = 22;

/// The errno and the text of a refusal.
fn refused(result: std::result::Result<(), vm::Error>) -> (Option<i32>, String) {
    match result {
        Ok(()) => panic!("it was not refused"),
        Err(error) => (error.errno(), error.to_string()),
    }
}

#[test]
fn programs_and_header_split_exclude_each_other() -> Result {
    let bed = Testbed::options().boot("xdp-header-split")?;
    let with_fragments = XdpProgram {
        fragments: true,
        ..program(XdpAction::Pass)
    };
    let split = |split| {
        bed.guest.call(SetRings {
            ns: bed.local.ns,
            interface: bed.local.name(),
            rx: None,
            tx: None,
            data_split: Some(split),
            hds_thresh: None,
        })
    };

    // The core refuses programs without fragment support, the driver those with it.
    split(DataSplit::On)?;
    for program in [program(XdpAction::Pass), with_fragments.clone()] {
        let (errno, text) = refused(attach(&bed, program));
        assert_eq!(errno, Some(EBUSY), "{text}");
        assert!(text.contains("tcp-data-split"), "{text}");
    }
    ping(&bed, 1000)?;

    // "Driver's default" means off, and is no obstacle.
    split(DataSplit::Auto)?;
    attach(&bed, program(XdpAction::Pass))?;
    let (errno, text) = refused(split(DataSplit::On));
    assert_eq!(errno, Some(EINVAL), "{text}");
    assert!(text.contains("XDP"), "{text}");
    attach(&bed, with_fragments)?;
    let (errno, text) = refused(split(DataSplit::On));
    assert_eq!(errno, Some(EBUSY), "{text}");
    assert!(text.contains("XDP"), "{text}");
    split(DataSplit::Off)?;
    exchange(&bed, frames(&bed, 1500), bed.local, OURS)?;
    assert!(runs(&bed)? > 0, "the program goes on");

    // Device memory needs header split, which rules out a program.
    let bind = || bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB);
    // Header split is off, and netdev_nl_bind_rx_doit() wants it on.
    assert_refused(bind(), EINVAL, "device memory beside a program");
    detach(&bed)?;
    split(DataSplit::On)?;
    let bound = bind()?;
    let (errno, text) = refused(attach(&bed, program(XdpAction::Pass)));
    assert_eq!(errno, Some(EBUSY), "{text}");
    bound.stop()?;
    split(DataSplit::Off)?;
    attach(&bed, program(XdpAction::Pass))?;
    ping(&bed, 1000)?;
    bed.finish()?;
    Ok(())
}
