// SPDX-License-Identifier: MIT OR Apache-2.0

//! Frames leave through another NIC, or go up the stack on another processor.

use cases::{Ability, Family, PORTS, Result, Testbed};
use protocol::{
    Ns, XdpAction, XdpProgram,
    ethtool::GetDriverStats,
    link::{SetReceiveMode, SetUp},
    rings::{RingChange, SetRings, TcpDataSplit},
    traffic::Ping,
    xdp::AttachXdp,
};

use crate::{MIB, attach, for_all, ping};

#[test]
fn two_nics_forward_all_traffic_between_two_wires_by_programs_alone() -> Result {
    forward("xdp-redirect", false)
}

#[test]
fn two_nics_forward_frames_in_fragments() -> Result {
    forward("xdp-redirect-fragments", true)
}

/// Both NICs redirect all frames to each other; in fragments if headers are split.
fn forward(name: &str, split: bool) -> Result {
    let bed = Testbed::options()
        .needs([Ability::ByteQueueLimits, Ability::XdpJumbo])
        .mtu(9000)
        .two_wires()
        .boot(name)?;
    for (port, other) in [(0, 1), (1, 0)] {
        bed.guest.call(SetReceiveMode::on(
            (Ns::Local, PORTS[port]),
            Some(true),
            None,
        ))?;
        if split {
            bed.guest.call(SetRings::on(
                (Ns::Local, PORTS[port]),
                RingChange {
                    tcp_data_split: Some(TcpDataSplit::On),
                    ..RingChange::default()
                },
            ))?;
        }
        bed.guest.call(AttachXdp::on(
            (Ns::Local, PORTS[port]),
            XdpProgram {
                fragments: split,
                ..for_all(XdpAction::Redirect {
                    ns: Ns::Local,
                    interface: PORTS[other].to_owned(),
                })
            },
        ))?;
    }
    bed.transfer_both_ways(4 * MIB)?;
    ping(&bed, 20_000)?;
    for port in PORTS {
        let statistics = bed.guest.call(GetDriverStats::on((Ns::Local, port)))?;
        let [redirected, sent] = ["rx_xdp_redirect", "tx_xdp"].map(|name| statistics[name]);
        // At least the payload of two transfers.
        let least = 2 * 4 * MIB / 9000;
        assert!(redirected > least && sent > least, "{port}: {statistics:?}");
        assert_eq!(bed.bytes_in_flight(port, 0..2)?, 0);
    }

    // A NIC that goes down with frames on their way to it takes no memory of the other's with it.
    bed.guest.call(SetUp::on((Ns::Local, PORTS[1]), false))?;
    let failed = || -> Result<u64> {
        let statistics = bed.guest.call(GetDriverStats::on((Ns::Local, PORTS[0])))?;
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
    bed.finish()
}

#[test]
fn frames_go_up_on_another_processor() -> Result {
    let bed = Testbed::options()
        .needs([Ability::XdpJumbo])
        .needs_counters(["rx_xdp_redirect"])
        .mtu(9000)
        .boot("xdp-processor")?;
    for cpu in 0..2 {
        attach(&bed, for_all(XdpAction::RedirectToCpu(cpu)))?;
        let before = bed.statistic(bed.local, "rx_xdp_redirect")?;
        bed.transfer_over_both(bed.peer, bed.local, 4 * MIB)?;
        assert!(bed.statistic(bed.local, "rx_xdp_redirect")? > before + 400);
        assert_eq!(bed.statistic(bed.local, "rx_xdp_failed")?, 0);
    }
    // Their memory is returned from there.
    bed.set_interface(bed.local, false)?;
    bed.wait_pools_gone(bed.local)?;
    bed.finish()
}
