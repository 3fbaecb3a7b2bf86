// SPDX-License-Identifier: MIT OR Apache-2.0

//! Everything that the stack has queued for sending is sent, whatever changes meanwhile. TCP would
//! hide a loss; datagrams do not.

use cases::{Ability, Datagrams, Family, Result, Testbed};
use protocol::{
    XdpAction, XdpProgram,
    ethtool::{Coalesce, SetCoalesce},
    rings::TcpDataSplit,
    rss::RssChange,
    xdp::{AttachXdp, DetachXdp},
};

/// How often each change is made and undone.
const ROUNDS: u32 = 8;

/// Sends datagrams at a constant rate, one every half millisecond, makes and undoes a change again
/// and again, and counts what arrives.
fn all_are_sent(
    name: &str,
    abilities: &[Ability],
    change: impl Fn(&Testbed) -> Result,
    undo: impl Fn(&Testbed) -> Result,
) -> Result {
    let bed = Testbed::options()
        .needs([Ability::LosslessChanges])
        .needs(abilities.iter().copied())
        .cpus(4)
        .boot(name)?;
    // Everything in flight fits, whenever the guest's processors get to run.
    bed.set_receive_ring(bed.peer, 4096)?;
    let mut flows = Vec::new();
    // Several, so that each queue has one.
    for _ in 0..6 {
        let datagrams = Datagrams {
            pause_us: 3000,
            ..bed.datagrams(bed.local, bed.peer, Family::V4, 1000)
        };
        let mut sink = datagrams.sink(&bed)?;
        let source = datagrams.source(&bed, None)?;
        // Now the neighbour is resolved: only a few datagrams can wait for that.
        sink.wait_bytes(1)?;
        flows.push((source, sink));
    }

    for _ in 0..ROUNDS {
        change(&bed)?;
        undo(&bed)?;
    }

    let mut sent = 0;
    let mut sinks = Vec::new();
    for (source, sink) in flows {
        sent += source.finish()?.sent;
        sinks.push(sink);
    }
    // The last ones may still be on their way.
    let read = bed.wait_until(sent, || bed.datagrams_read(bed.peer.ns));
    let mut reports = Vec::new();
    for sink in sinks {
        reports.push(sink.stop()?);
    }
    assert_eq!(
        (
            reports.iter().map(|report| report.received).sum::<u64>(),
            reports.iter().map(|report| report.missing).sum::<u64>(),
        ),
        (sent, 0),
        "no datagram is lost: {reports:?}"
    );
    read?;
    bed.finish()
}

#[test]
fn datagrams_are_sent_while_the_ring_sizes_change() -> Result {
    all_are_sent(
        "lossless-rings",
        &[Ability::RingSizes],
        |bed| bed.set_rings(bed.local, 256, 128),
        |bed| bed.set_rings(bed.local, 1024, 512),
    )
}

#[test]
fn datagrams_are_sent_while_the_mtu_changes() -> Result {
    all_are_sent(
        "lossless-mtu",
        &[],
        |bed| bed.set_mtu(bed.local, 9000),
        |bed| bed.set_mtu(bed.local, 1500),
    )
}

#[test]
fn datagrams_are_sent_while_header_split_goes_on_and_off() -> Result {
    all_are_sent(
        "lossless-split",
        &[Ability::HeaderSplit],
        |bed| bed.set_header_split(bed.local, TcpDataSplit::On),
        |bed| bed.set_header_split(bed.local, TcpDataSplit::Off),
    )
}

#[test]
fn datagrams_are_sent_while_xdp_programs_come_and_go() -> Result {
    all_are_sent(
        "lossless-xdp",
        &[Ability::Xdp],
        |bed| {
            Ok(bed.guest.call(AttachXdp::on(
                bed.local,
                XdpProgram {
                    ethertype: None,
                    action: XdpAction::Pass,
                    fragments: false,
                },
            ))?)
        },
        |bed| {
            bed.guest.call(DetachXdp::on(bed.local))?;
            // Rings without headroom for a program, so that the next program is a first one again.
            bed.set_mtu(bed.local, 9000)?;
            bed.set_mtu(bed.local, 1500)
        },
    )
}

#[test]
fn datagrams_are_sent_while_the_rss_table_changes() -> Result {
    let set = |bed: &Testbed, queues: &[u32], byte: u8| -> Result {
        bed.steer(bed.local, queues)?;
        let key = bed.rss(bed.local)?.key;
        let change = RssChange {
            key: Some(vec![byte; key.len()]),
            ..RssChange::default()
        };
        Ok(bed.set_rss(bed.local, change)?)
    };
    all_are_sent(
        "lossless-rss",
        &[Ability::Rss],
        |bed| set(bed, &[1, 2], 0x6d),
        |bed| set(bed, &[0, 3], 0x5a),
    )
}

#[test]
fn datagrams_are_sent_while_channels_come_and_go() -> Result {
    all_are_sent(
        "lossless-channels",
        &[Ability::ByteQueueLimits, Ability::Channels],
        |bed| {
            // What byte queue limits hold back is in a qdisc, and the core resets those of queues
            // that go: one frame a queue until it is completed, which takes a while.
            bed.guest.call(SetCoalesce::on(
                bed.local,
                None,
                Coalesce {
                    rx_usecs: Some(4000),
                    adaptive_rx: Some(false),
                    ..Coalesce::default()
                },
            ))?;
            for queue in 2..4 {
                let limit = "byte_queue_limits/limit_max";
                bed.set_tx_queue(bed.local.interface, queue, limit, "1")?;
            }
            bed.set_channels(bed.local, 2)
        },
        |bed| bed.set_channels(bed.local, 4),
    )
}

#[test]
fn datagrams_are_sent_while_the_device_tests_itself() -> Result {
    all_are_sent(
        "lossless-test",
        &[],
        |bed| bed.test_offline(bed.local),
        |_| Ok(()),
    )
}

#[test]
fn the_device_tests_itself_while_frames_arrive() -> Result {
    const TESTS: u32 = 15;

    let bed = Testbed::options()
        .needs([Ability::LosslessChanges])
        .boot("lossless-flood")?;
    let mut flows = Vec::new();
    for family in Family::BOTH {
        let datagrams = bed.datagrams(bed.peer, bed.local, family, 64);
        let mut sink = datagrams.sink(&bed)?;
        let source = datagrams.source(&bed, None)?;
        sink.wait_bytes(1)?;
        flows.push((source, sink));
    }
    for _ in 0..TESTS {
        bed.test_offline(bed.local)?;
    }
    for (source, sink) in flows {
        source.stop()?;
        sink.stop()?;
    }
    bed.finish()
}
