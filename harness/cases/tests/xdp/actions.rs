// SPDX-License-Identifier: MIT OR Apache-2.0

//! What programs do with frames of any length.

use cases::{Ability, Result, Testbed, ethernet};
use protocol::{XdpAction, XdpProgram, netdev::QueueKind, xdp::XdpFeatures};

use crate::{
    OTHER, OURS, attach, detach, exchange, frame, frames, ping, program, runs, with_fragments,
};

/// Sums over the queues of the NIC under test: packets received, and sent.
fn packets(bed: &Testbed) -> Result<[u64; 2]> {
    let sum =
        |kind, name| -> Result<u64> { Ok(bed.queue_stats(bed.local, kind, name)?.iter().sum()) };
    Ok([
        sum(QueueKind::Rx, "rx-packets")?,
        sum(QueueKind::Tx, "tx-packets")?,
    ])
}

/// Tries everything that a program can do with frames of up to `mtu` bytes; in fragments, with
/// programs for that, if headers are split.
pub(crate) fn programs_do_what_they_want(bed: &Testbed, mtu: u32, split: bool) -> Result {
    let program = |action| XdpProgram {
        fragments: split,
        ..program(action)
    };
    let sent = frames(bed, mtu);
    let count = sent.len() as u64;
    let statistic = |name| bed.statistic(bed.local, name);

    // The program ignores frames of another type.
    attach(bed, program(XdpAction::Drop))?;
    let others: Vec<_> = (0..3)
        .map(|seed| frame(bed, OTHER, seed, mtu as usize))
        .collect();
    assert_eq!(exchange(bed, others.clone(), bed.local, OTHER)?, others);
    assert_eq!(runs(bed)?, 0);

    // A frame that goes up the stack here without a socket for it is counted as dropped.
    let (dropped, unwanted) = (
        statistic("rx_xdp_drop")?,
        bed.link_stats(bed.local)?.rx_dropped,
    );
    let [received, _] = packets(bed)?;
    for frame in sent.clone() {
        bed.send_frame(bed.peer, frame)?;
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
        frame.splice(..14, ethernet(bed.local.mac(), bed.peer.mac(), OURS));
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
        bed.send_frame(bed.peer, sent[0].clone())?;
        bed.wait_until(failed + 1, || statistic("rx_xdp_failed"))?;
    }

    // Decapsulates a frame within a frame.
    attach(bed, program(XdpAction::MoveHead(14)))?;
    let inner: Vec<_> = (0..3)
        .map(|seed| frame(bed, OTHER, seed, mtu as usize - 14))
        .collect();
    let outer = inner.iter().map(|inner| {
        let mut outer = ethernet(bed.peer.mac(), bed.local.mac(), OURS);
        outer.extend(inner);
        outer
    });
    assert!(
        exchange(bed, outer.collect(), bed.local, OTHER)? == inner,
        "cut in front"
    );

    // There is the headroom that a program may ask for: XDP_PACKET_HEADROOM.
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
        // Programs cannot count on spare room at the end of the longest buffer, and there is none
        // at the end of a fragment.
        let longest = if split && bytes > 0 { 100 } else { 1014 };
        let sent: Vec<_> = sent
            .iter()
            .filter(|frame| frame.len() <= longest)
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
    let bed = Testbed::options()
        .needs([Ability::Xdp])
        .needs_counters(["rx_xdp_drop", "rx_xdp_failed", "rx_xdp_tx"])
        .boot("xdp-actions")?;
    // Basic, redirect, redirect target, zero-copy sockets, and fragments in and out.
    let features = bed.guest.call(XdpFeatures::on(bed.local))?;
    assert_eq!(features, 1 | 2 | 4 | 8 | 32 | 64);

    programs_do_what_they_want(&bed, 1500, false)?;
    // A program stays when buffers grow, and runs for the longest frames.
    for station in bed.stations() {
        bed.set_mtu(station, 9216)?;
    }
    let before = runs(&bed)?;
    exchange(&bed, vec![frame(&bed, OURS, 1, 100)], bed.local, OURS)?;
    assert_eq!(runs(&bed)?, before + 1);
    programs_do_what_they_want(&bed, 9216, false)?;
    // Programs that know of fragments see none while headers are not split.
    attach(&bed, with_fragments(program(XdpAction::Pass)))?;
    let sent = frames(&bed, 9216);
    assert!(exchange(&bed, sent.clone(), bed.local, OURS)? == sent);

    // A frame longer than the MTU is dropped before it reaches a program.
    bed.set_mtu(bed.local, 1500)?;
    let count = runs(&bed)?;
    for frame in [frame(&bed, OURS, 1, 4000), frame(&bed, OURS, 2, 100)] {
        bed.send_frame(bed.peer, frame)?;
    }
    bed.wait_until(count + 1, || runs(&bed))?;
    assert_eq!(runs(&bed)?, count + 1, "the short one");

    detach(&bed)?;
    let count = runs(&bed)?;
    ping(&bed, 1400)?;
    assert_eq!(runs(&bed)?, count);
    bed.finish()
}
