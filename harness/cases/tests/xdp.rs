// SPDX-License-Identifier: MIT OR Apache-2.0

//! XDP programs: what they do with frames, how they come and go, and what excludes them.

use cases::{Family, PORTS, Result, Station, Testbed, finish};
use protocol::{
    Memory, Ns, XdpAction, XdpProgram,
    kernel::{ReadFile, UnloadModule},
    link::SetReceiveMode,
    netdev::QueueKind,
    rings::DataSplit,
    traffic::{ExchangeFrames, Ping},
    xdp::{AttachXdp, DetachXdp, XdpFeatures, XdpRuns},
};

const MIB: u64 = 1 << 20;

/// Ethernet types for experiments (IEEE 802): of frames that programs are for, and of others.
const OURS: u16 = 0x88b5;
const OTHER: u16 = 0x88b6;

const EBUSY: i32 = 16;
const EINVAL: i32 = 22;

/// A program for frames of our type.
fn program(action: XdpAction) -> XdpProgram {
    XdpProgram {
        ethertype: Some(OURS),
        action,
        fragments: false,
    }
}

/// A program for all frames.
fn for_all(action: XdpAction) -> XdpProgram {
    XdpProgram {
        ethertype: None,
        ..program(action)
    }
}

fn attach(bed: &Testbed, program: XdpProgram) -> std::result::Result<(), vm::Error> {
    bed.guest.call(AttachXdp {
        ns: bed.local.ns,
        interface: bed.local.name(),
        program,
    })
}

fn detach(bed: &Testbed) -> Result {
    Ok(bed.guest.call(DetachXdp {
        ns: bed.local.ns,
        interface: bed.local.name(),
    })?)
}

fn runs(bed: &Testbed) -> Result<u64> {
    Ok(bed.guest.call(XdpRuns {
        ns: bed.local.ns,
        interface: bed.local.name(),
    })?)
}

/// Waits until the program has run, while there is traffic for it.
fn runs_again(bed: &Testbed) -> Result {
    let before = runs(bed)?;
    bed.wait_until(before + 1, || runs(bed))?;
    Ok(())
}

/// Bytes that differ from frame to frame.
fn payload(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| ((at * 7 + seed * 13) % 251) as u8)
        .collect()
}

fn ethernet(from: Station, to: Station, ethertype: u16) -> Vec<u8> {
    [&to.mac().0[..], &from.mac().0, &ethertype.to_be_bytes()].concat()
}

/// A frame of the peer's for the NIC under test, with so many bytes of payload.
fn frame(bed: &Testbed, ethertype: u16, seed: usize, length: usize) -> Vec<u8> {
    let mut frame = ethernet(bed.peer, bed.local, ethertype);
    frame.extend(payload(seed, length));
    frame
}

/// Has the peer send frames; returns those of a type that came to a station, as many.
fn exchange(
    bed: &Testbed,
    frames: Vec<Vec<u8>>,
    to: Station,
    ethertype: u16,
) -> Result<Vec<Vec<u8>>> {
    let count = frames.len();
    Ok(bed.guest.call(ExchangeFrames {
        from: bed.peer.ns,
        through: bed.peer.name(),
        frames,
        to: to.ns,
        at: to.name(),
        ethertype,
        count,
        timeout_ms: 20_000,
    })?)
}

/// Sums over the queues of the NIC under test: packets received, and sent.
fn packets(bed: &Testbed) -> Result<[u64; 2]> {
    let sum =
        |kind, name| -> Result<u64> { Ok(bed.queue_stats(bed.local, kind, name)?.iter().sum()) };
    Ok([
        sum(QueueKind::Rx, "rx-packets")?,
        sum(QueueKind::Tx, "tx-packets")?,
    ])
}

fn ping(bed: &Testbed, size: u32) -> Result {
    let report = bed.guest.call(Ping {
        ns: bed.peer.ns,
        to: bed.local.address(Family::V4),
        count: 2,
        size,
        timeout_ms: 20_000,
    })?;
    assert_eq!((report.received, report.corrupt), (2, 0), "{report:?}");
    Ok(())
}

/// Bytes that the stack has put on the TX queues of an interface and that were not completed.
fn bytes_in_flight(bed: &Testbed, interface: &str) -> Result<u64> {
    let mut sum = 0;
    for queue in 0..2 {
        let queue = format!("/sys/class/net/{interface}/queues/tx-{queue}");
        let text = bed.guest.call(ReadFile {
            ns: Ns::Local,
            path: format!("{queue}/byte_queue_limits/inflight"),
        })?;
        sum += text.trim().parse::<u64>()?;
    }
    Ok(sum)
}

/// Payloads of frames from the shortest to the longest of an MTU.
fn lengths(mtu: u32) -> Vec<usize> {
    let mtu = mtu as usize;
    vec![46, 47, 64, 500, 1000, mtu / 2, mtu - 1, mtu]
}

fn frames(bed: &Testbed, mtu: u32) -> Vec<Vec<u8>> {
    let lengths = lengths(mtu).into_iter().enumerate();
    lengths
        .map(|(seed, length)| frame(bed, OURS, seed, length))
        .collect()
}

/// All that a program can do with frames of up to `mtu` bytes.
fn programs_do_what_they_want(bed: &Testbed, mtu: u32) -> Result {
    let sent = frames(bed, mtu);
    let count = sent.len() as u64;
    let statistic = |name| bed.statistic(bed.local, name);

    // Those for another type are no affair of a program.
    attach(bed, program(XdpAction::Drop))?;
    let others: Vec<_> = (0..3)
        .map(|seed| frame(bed, OTHER, seed, mtu as usize))
        .collect();
    assert_eq!(exchange(bed, others.clone(), bed.local, OTHER)?, others);
    assert_eq!(runs(bed)?, 0);

    // Whatever goes up here without anybody who wants it is counted as dropped.
    let (dropped, unwanted) = (
        statistic("rx_xdp_drop")?,
        bed.link_stats(bed.local)?.rx_dropped,
    );
    let [received, _] = packets(bed)?;
    for frame in sent.clone() {
        bed.guest.call(protocol::traffic::SendFrame {
            ns: bed.peer.ns,
            interface: bed.peer.name(),
            frame,
        })?;
    }
    bed.wait_until(dropped + count, || statistic("rx_xdp_drop"))?;
    assert_eq!(runs(bed)?, count);
    assert!(
        packets(bed)?[0] >= received + count,
        "dropped ones were received"
    );
    assert_eq!(bed.link_stats(bed.local)?.rx_dropped, unwanted);

    attach(bed, program(XdpAction::Pass))?;
    assert!(
        exchange(bed, sent.clone(), bed.local, OURS)? == sent,
        "passed"
    );
    assert_eq!(runs(bed)?, count);

    attach(bed, program(XdpAction::Transmit))?;
    let ([received, transmitted], back) = (packets(bed)?, statistic("rx_xdp_tx")?);
    let mut expected = sent.clone();
    for frame in &mut expected {
        frame.splice(..14, ethernet(bed.local, bed.peer, OURS));
    }
    assert!(
        exchange(bed, sent.clone(), bed.peer, OURS)? == expected,
        "sent back"
    );
    assert_eq!(statistic("rx_xdp_tx")?, back + count);
    bed.wait_until(transmitted + count, || Ok(packets(bed)?[1]))?;
    assert!(
        packets(bed)?[0] >= received + count,
        "they were received, too"
    );

    for failure in [XdpAction::Abort, XdpAction::Unknown] {
        let failed = statistic("rx_xdp_failed")?;
        attach(bed, program(failure))?;
        bed.guest.call(protocol::traffic::SendFrame {
            ns: bed.peer.ns,
            interface: bed.peer.name(),
            frame: sent[0].clone(),
        })?;
        bed.wait_until(failed + 1, || statistic("rx_xdp_failed"))?;
    }

    // A frame in a frame comes out.
    attach(bed, program(XdpAction::MoveHead(14)))?;
    let inner: Vec<_> = (0..3)
        .map(|seed| frame(bed, OTHER, seed, mtu as usize - 14))
        .collect();
    let outer = inner.iter().map(|inner| {
        let mut outer = ethernet(bed.peer, bed.local, OURS);
        outer.extend(inner);
        outer
    });
    assert!(
        exchange(bed, outer.collect(), bed.local, OTHER)? == inner,
        "cut in front"
    );

    // There is room for all that a program may ask for: XDP_PACKET_HEADROOM.
    for room in [14, 64, 256] {
        attach(bed, program(XdpAction::MoveHead(-room)))?;
        let longer = exchange(bed, sent.clone(), bed.local, OURS)?;
        for (sent, longer) in sent.iter().zip(&longer) {
            assert_eq!(longer.len(), sent.len() + room as usize);
            assert!(longer[..14] == sent[..14] && longer.ends_with(sent));
        }
    }
    for bytes in [1, 100, -1, -30] {
        attach(bed, program(XdpAction::MoveTail(bytes)))?;
        // What is left of the longest buffer is not for programs to count on.
        let sent: Vec<_> = sent
            .iter()
            .filter(|frame| frame.len() <= 1014)
            .cloned()
            .collect();
        let mut expected = sent.clone();
        for frame in &mut expected {
            frame.resize(frame.len().saturating_add_signed(bytes as isize), 0);
        }
        assert!(
            exchange(bed, sent, bed.local, OURS)? == expected,
            "{bytes} bytes at the end"
        );
    }
    Ok(())
}

#[test]
fn programs_pass_drop_send_back_and_change_frames_of_any_length() -> Result {
    let bed = Testbed::options().boot("xdp-actions")?;
    // Frames without fragments, in and out: basic, redirect, and a target of redirects.
    let features = bed.guest.call(XdpFeatures {
        ns: bed.local.ns,
        interface: bed.local.name(),
    })?;
    assert_eq!(features, 1 | 2 | 4);

    programs_do_what_they_want(&bed, 1500)?;
    // A program stays when buffers become longer, and is there for the longest frames.
    for station in bed.stations() {
        bed.set_mtu(station, 9216)?;
    }
    let before = runs(&bed)?;
    exchange(&bed, vec![frame(&bed, OURS, 1, 100)], bed.local, OURS)?;
    assert_eq!(runs(&bed)?, before + 1);
    programs_do_what_they_want(&bed, 9216)?;
    // Programs that know of fragments see none.
    attach(
        &bed,
        XdpProgram {
            fragments: true,
            ..program(XdpAction::Pass)
        },
    )?;
    let sent = frames(&bed, 9216);
    assert!(exchange(&bed, sent.clone(), bed.local, OURS)? == sent);

    // What is longer than the MTU is for nobody, a program neither.
    bed.set_mtu(bed.local, 1500)?;
    let count = runs(&bed)?;
    for frame in [frame(&bed, OURS, 1, 4000), frame(&bed, OURS, 2, 100)] {
        bed.guest.call(protocol::traffic::SendFrame {
            ns: bed.peer.ns,
            interface: bed.peer.name(),
            frame,
        })?;
    }
    bed.wait_until(count + 1, || runs(&bed))?;
    assert_eq!(runs(&bed)?, count + 1, "the short one");

    detach(&bed)?;
    let count = runs(&bed)?;
    ping(&bed, 1400)?;
    assert_eq!(runs(&bed)?, count);
    bed.finish()?;
    Ok(())
}

#[test]
fn programs_come_and_go_under_traffic_and_stay_while_the_interface_is_down() -> Result {
    let bed = Testbed::options().boot("xdp-changes")?;
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
    bed.set_interface(bed.local, false)?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    let before = runs(&bed)?;
    ping(&bed, 1000)?;
    assert!(runs(&bed)? >= before + 2);
    bed.set_interface(bed.local, false)?;
    detach(&bed)?;
    attach(&bed, program(XdpAction::Transmit))?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;

    // The ring that frames are sent back on is the stack's, too, and the stack's accounts are right.
    let stream = bed.stream(bed.local, bed.peer, Family::V6);
    let sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let back = || bed.statistic(bed.local, "rx_xdp_tx");
    let before = back()?;
    for seed in 0..5 {
        // Under this load a ring may be full: some of them come back.
        bed.guest.call(ExchangeFrames {
            from: bed.peer.ns,
            through: bed.peer.name(),
            frames: (0..40).map(|n| frame(&bed, OURS, seed + n, 1000)).collect(),
            to: bed.peer.ns,
            at: bed.peer.name(),
            ethertype: OURS,
            count: 10,
            timeout_ms: 20_000,
        })?;
    }
    assert!(back()? >= before + 5 * 10);
    finish(source, sink)?;
    bed.wait_until(1, || {
        Ok(u64::from(bytes_in_flight(&bed, bed.local.interface)? == 0))
    })?;

    // The driver goes with a program attached.
    bed.guest.call(UnloadModule {
        name: "rigb".to_owned(),
    })?;
    bed.finish()?;
    Ok(())
}

#[test]
fn two_nics_forward_all_traffic_between_two_wires_by_programs_alone() -> Result {
    let bed = Testbed::options()
        .mtu(9000)
        .two_wires()
        .boot("xdp-redirect")?;
    for (port, other) in [(0, 1), (1, 0)] {
        bed.guest.call(SetReceiveMode {
            ns: Ns::Local,
            interface: PORTS[port].to_owned(),
            promiscuous: Some(true),
            all_multicast: None,
        })?;
        bed.guest.call(AttachXdp {
            ns: Ns::Local,
            interface: PORTS[port].to_owned(),
            program: for_all(XdpAction::Redirect {
                ns: Ns::Local,
                interface: PORTS[other].to_owned(),
            }),
        })?;
    }
    for family in Family::BOTH {
        for (from, to) in [(bed.local, bed.peer), (bed.peer, bed.local)] {
            bed.stream(from, to, family)
                .transfer(&bed, 4 * MIB, &[64 << 10])?;
        }
    }
    ping(&bed, 20_000)?;
    for port in PORTS {
        let statistics = bed.guest.call(protocol::ethtool::GetDriverStats {
            ns: Ns::Local,
            interface: port.to_owned(),
        })?;
        let [redirected, sent] = ["rx_xdp_redirect", "tx_xdp"].map(|name| statistics[name]);
        assert!(redirected > 1000 && sent > 1000, "{port}: {statistics:?}");
        assert_eq!(bytes_in_flight(&bed, port)?, 0);
    }

    // One that leaves with frames on the way to it takes nothing along that is the other's.
    bed.guest.call(protocol::link::SetUp {
        ns: Ns::Local,
        interface: PORTS[1].to_owned(),
        up: false,
    })?;
    let failed = || -> Result<u64> {
        let statistics = bed.guest.call(protocol::ethtool::GetDriverStats {
            ns: Ns::Local,
            interface: PORTS[0].to_owned(),
        })?;
        Ok(statistics["rx_xdp_failed"])
    };
    let before = failed()?;
    let report = bed.guest.call(Ping {
        ns: bed.local.ns,
        to: bed.peer.address(Family::V4),
        count: 1,
        size: 100,
        timeout_ms: 500,
    })?;
    assert_eq!(report.received, 0, "{report:?}");
    bed.wait_until(before + 1, failed)?;
    bed.finish()?;
    Ok(())
}

#[test]
fn frames_go_up_on_another_processor() -> Result {
    let bed = Testbed::options().mtu(9000).boot("xdp-processor")?;
    for cpu in 0..2 {
        attach(&bed, for_all(XdpAction::RedirectToCpu(cpu)))?;
        let before = bed.statistic(bed.local, "rx_xdp_redirect")?;
        for family in Family::BOTH {
            bed.stream(bed.peer, bed.local, family)
                .transfer(&bed, 4 * MIB, &[64 << 10])?;
        }
        assert!(bed.statistic(bed.local, "rx_xdp_redirect")? > before + 400);
        assert_eq!(bed.statistic(bed.local, "rx_xdp_failed")?, 0);
    }
    // Their memory comes back from there.
    bed.set_interface(bed.local, false)?;
    bed.wait_pools_gone(bed.local)?;
    bed.finish()?;
    Ok(())
}

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
        bed.guest.call(protocol::rings::SetRings {
            ns: bed.local.ns,
            interface: bed.local.name(),
            rx: None,
            tx: None,
            data_split: Some(split),
            hds_thresh: None,
        })
    };

    // The core refuses programs that know of no fragments, the driver those that do.
    split(DataSplit::On)?;
    for program in [program(XdpAction::Pass), with_fragments.clone()] {
        let (errno, text) = refused(attach(&bed, program));
        assert_eq!(errno, Some(EBUSY), "{text}");
        assert!(text.contains("tcp-data-split"), "{text}");
    }
    ping(&bed, 1000)?;

    // "As the driver likes it" is off, and no obstacle.
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

    // Device memory needs header split, and so no program.
    let bind = || bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB);
    assert!(bind().is_err(), "device memory was bound beside a program");
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
