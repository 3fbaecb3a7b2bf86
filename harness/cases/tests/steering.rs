// SPDX-License-Identifier: MIT OR Apache-2.0

//! What QEMU's NICs can't do: rules that steer flows, and datagrams that the device segments. Our model of
//! the 82576 can.

use cases::{Ability, Datagrams, Family, Result, Testbed, finish};
use protocol::{
    Memory,
    flow_rules::{DeleteFlowRule, FlowRule, FlowType, InsertFlowRule, ListFlowRules, RulePlace},
    netdev::QueueKind,
};

const MIB: u64 = 1 << 20;
/// Roughly the number of 1500-byte frames in a MiB; far fewer others arrive meanwhile.
const FRAMES: u64 = 600;
/// By its kernel name.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";

/// Steers TCP over IPv4 to this port.
fn steer(bed: &Testbed, port: u16, queue: u32) -> Result<u32> {
    Ok(bed.guest.call(InsertFlowRule::on(
        bed.local,
        RulePlace::Any,
        FlowRule {
            destination_port: Some((port, 0xffff).into()),
            ..FlowRule::all(FlowType::Tcp4, queue)
        },
    ))?)
}

/// The frames that each queue receives of a new stream to this port.
fn frames_to(bed: &Testbed, port: u16) -> Result<Vec<u64>> {
    let frames = || bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets");
    let mut stream = bed.stream(bed.peer, bed.local, Family::V4);
    stream.port = port;
    let before = frames()?;
    stream.transfer(bed, MIB, &[64 << 10])?;
    let after = frames()?;
    Ok(after
        .iter()
        .zip(before)
        .map(|(now, then)| now - then)
        .collect())
}

#[test]
fn a_flow_goes_to_the_queue_of_its_rule_and_where_its_hash_says_without_one() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Ntuple, Ability::QueueStatistics, Ability::Rss])
        .cpus(4)
        .boot("rule-flow")?;
    bed.steer(bed.local, &[0])?;
    let (port, other) = (bed.port(), bed.port());
    for queue in [3, 1] {
        let place = steer(&bed, port, queue)?;
        if queue == 1 {
            // The device is reset, and told of its rules again.
            bed.down_and_up(bed.local)?;
            bed.wait_carrier(true)?;
        }
        for (port, wanted) in [(port, queue as usize), (other, 0)] {
            let frames = frames_to(&bed, port)?;
            assert!(
                (0..4).all(|queue| (frames[queue] > FRAMES) == (queue == wanted)),
                "{frames:?} instead of queue {wanted}"
            );
        }
        bed.guest.call(DeleteFlowRule::on(bed.local, place))?;
    }
    let rules = bed.guest.call(ListFlowRules::on(bed.local))?;
    assert_eq!(rules.rules, []);
    assert!(frames_to(&bed, port)?[0] > FRAMES, "the rule is gone");
    bed.finish()
}

#[test]
fn device_memory_gets_the_flow_of_a_rule_while_others_go_on_beside_it() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Ntuple, Ability::DevmemRx, Ability::Rss])
        .mtu(9000)
        .header_split()
        .boot("rule-devmem")?;
    bed.steer(bed.local, &[0])?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    assert_eq!(stream.memory, Memory::Udmabuf);
    steer(&bed, stream.port, 1)?;
    let other = bed.stream(bed.peer, bed.local, Family::V6);
    let (sink, source) = (other.sink(&bed)?, other.source(&bed, None, &[64 << 10], 0)?);
    let received = stream.receive_devmem(&bed, 1, 16 * MIB, 8 * MIB, |_| ())?;
    assert_eq!(
        (received.verified, received.sink.linear_bytes),
        (16 * MIB, 0),
        "{received:?}"
    );
    finish(source, sink)?;
    bed.finish()
}

#[test]
fn datagrams_of_a_send_are_segmented_by_the_device_and_arrive_whole() -> Result {
    const BATCH: u32 = 20;
    const SENDS: u64 = 50;
    let bed = Testbed::options()
        .needs([Ability::UdpSegmentation])
        .needs_counters(["tx_tso"])
        .boot("udp-segmentation")?;
    bed.set_features(bed.local, &[(UDP_SEGMENTATION, true)])?;
    // The receiving kernel verifies every checksum itself.
    bed.set_features(bed.peer, &[("rx-checksum", false)])?;
    // All of a family's datagrams fit, whenever the guest's processors get to run.
    bed.set_receive_ring(bed.peer, 4096)?;
    for family in Family::BOTH {
        // Resolve the neighbour first: only a few sends can wait for that.
        bed.ping(bed.local, bed.peer, family, 1, 0)?;
        let before = bed.statistic(bed.local, "tx_tso")?;
        let datagrams = Datagrams {
            batch: Some(BATCH),
            pause_us: 2000,
            ..bed.datagrams(bed.local, bed.peer, family, 1000)
        };
        let sink = datagrams.sink(&bed)?;
        let read = bed.datagrams_read(bed.peer.ns)?;
        let source = datagrams.source(&bed, Some(SENDS * u64::from(BATCH)))?;
        let sent = source.join()?.sent;
        assert_eq!(sent, SENDS * u64::from(BATCH));
        bed.wait_until(read + sent, || bed.datagrams_read(bed.peer.ns))?;
        assert_eq!(sink.stop()?.corrupt, 0, "{family:?}");
        let segmented = bed.statistic(bed.local, "tx_tso")? - before;
        assert!(segmented >= SENDS, "{segmented} over {family:?}");
    }
    bed.finish()
}
