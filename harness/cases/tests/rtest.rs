// SPDX-License-Identifier: MIT OR Apache-2.0

//! What safe code can do with `net` while it runs, and a driver should not; and hardware that is unlike
//! that of the other drivers. `rtest` does and has it.

use std::{thread, time::Duration};

use cases::{Family, Frame, PATIENCE_MS, Result, Testbed, assert_refused};
use libc::{EBUSY, EINVAL};
use protocol::{
    Ns, XdpAction, XdpProgram,
    ethtool::{Coalesce, GetCoalesce, GetLinkModes, SetCoalesce},
    flow_rules::{FlowAction, FlowRule, FlowType, InsertFlowRule, ListFlowRules, RulePlace},
    kernel::{FreeDeferred, LoadModule, UnloadModule},
    link::{GetLinkStats, LinkStats, ListInterfaces, MoveInterface, SetMtu, SetUp, WaitCarrier},
    netdev::{ListPagePools, ListStrayPools},
    rss::{CreateRssContext, GetRss, Indirection, RssChange, SetRss},
    traffic::SendFrame,
    xdp::AttachXdp,
};

const MODULE: &str = "rtest";
const INTERFACE: &str = "test0";
/// Where it is.
const RTEST: (Ns, &str) = (Ns::Local, INTERFACE);
const MTU: u32 = 9000;
const FRAMES: u64 = 50;

/// Loads the driver, and brings its interface up.
fn load(bed: &Testbed) -> Result {
    load_with(bed, "")
}

fn load_with(bed: &Testbed, parameters: &str) -> Result {
    bed.guest.call(LoadModule {
        name: MODULE.to_owned(),
        parameters: parameters.to_owned(),
    })?;
    bed.guest.call(MoveInterface {
        from: Ns::Local,
        interface: "eth0".to_owned(),
        to: Ns::Local,
        rename: Some(INTERFACE.to_owned()),
    })?;
    bed.guest.call(SetMtu::on(RTEST, MTU))?;
    up(bed, true)?;
    bed.guest.call(WaitCarrier::on(RTEST, true, PATIENCE_MS))?;
    Ok(())
}

fn up(bed: &Testbed, up: bool) -> Result {
    Ok(bed.guest.call(SetUp::on(RTEST, up))?)
}

/// What it was given counts as sent, what it took from its pool as received.
fn stats(bed: &Testbed) -> Result<LinkStats> {
    Ok(bed.guest.call(GetLinkStats::on(RTEST))?)
}

/// Has the driver send a frame.
fn send(bed: &Testbed, frame: Frame) -> Result {
    Ok(bed.guest.call(SendFrame::on(RTEST, frame.into_bytes()))?)
}

/// Has the driver send frames, until all count as sent. Returns what does then.
fn send_all(bed: &Testbed) -> Result<u64> {
    let before = stats(bed)?.tx_packets;
    for _ in 0..FRAMES {
        let frame = Frame::tcp(bed.peer, bed.local, Family::V4, 1, &[0; 1000])?;
        send(bed, frame)?;
    }
    bed.wait_until(before + FRAMES, || Ok(stats(bed)?.tx_packets))
}

/// Unloads the driver, after its pool is known to be there, and waits until the pool is gone.
fn unload(bed: &Testbed) -> Result {
    let pools = bed.guest.call(ListPagePools::on(RTEST))?;
    let in_use = pools.iter().filter(|pool| pool.detach_time.is_none());
    assert_eq!(
        in_use.count(),
        2,
        "the NAPI's and the TX queue's: {pools:?}"
    );
    bed.guest.call(UnloadModule::new(MODULE))?;
    bed.wait_until(1, || {
        bed.guest.call(FreeDeferred {})?;
        let pools = bed.guest.call(ListStrayPools { ns: Ns::Local })?;
        Ok(pools.is_empty().into())
    })?;
    Ok(())
}

#[test]
fn what_is_dropped_in_hard_interrupt_returns_to_its_pool() -> Result {
    let bed = Testbed::options()
        .mtu(MTU)
        .header_split()
        .needs_kernel(["BPF_SYSCALL"])
        .boot("rtest-hard-interrupt")?;
    load(&bed)?;
    bed.guest.call(AttachXdp::on(
        bed.local,
        XdpProgram {
            ethertype: None,
            action: XdpAction::Redirect {
                ns: Ns::Local,
                interface: INTERFACE.to_owned(),
            },
            fragments: true,
        },
    ))?;
    let frame = |size| {
        let payload = vec![0; size];
        Frame::tcp(bed.peer, bed.local, Family::V4, 1, &payload)
    };

    // skbs.
    let skbs = send_all(&bed)?;
    // XDP frames with their payload in fragments.
    let redirected = || bed.statistic(bed.local, "rx_xdp_redirect");
    let before = redirected()?;
    for size in [1000, 8000] {
        for _ in 0..FRAMES {
            frame(size)?.send(&bed)?;
        }
    }
    bed.wait_until(before + 2 * FRAMES, redirected)?;
    bed.wait_until(skbs + 2 * FRAMES, || Ok(stats(&bed)?.tx_packets))?;
    // Memory of its own pool.
    bed.wait_until(FRAMES, || Ok(stats(&bed)?.rx_packets))?;

    bed.set_interface(bed.local, false)?;
    bed.wait_pools_gone(bed.local)?;
    unload(&bed)?;
    bed.finish()
}

#[test]
fn what_a_driver_forgets_does_not_outlive_its_device() -> Result {
    let bed = Testbed::options().boot("rtest-forgotten")?;
    for _ in 0..2 {
        load(&bed)?;
        up(&bed, false)?;
        // It polls although the interface is down.
        let before = stats(&bed)?.rx_packets;
        bed.wait_until(before + 3, || Ok(stats(&bed)?.rx_packets))?;
        assert_refused(up(&bed, true), EBUSY, "a second guard");
        unload(&bed)?;
    }
    // Ten times as long as a starved NAPI waits before it polls again.
    thread::sleep(Duration::from_millis(100));
    bed.transfer(bed.peer, bed.local, Family::V4, 1 << 20)?;
    bed.finish()
}

#[test]
fn a_driver_that_completes_more_than_was_sent_is_warned_and_goes_on() -> Result {
    let bed = Testbed::options()
        .needs_kernel(["BQL"])
        .boot("rtest-overcomplete")?;
    bed.guest.expect_log(&["WARNING:", "net_shim_tx_completed"]);
    load_with(&bed, "overcomplete=1")?;
    // Each poll does it.
    bed.wait_until(FRAMES, || Ok(stats(&bed)?.rx_packets))?;
    send_all(&bed)?;
    unload(&bed)?;
    bed.finish()
}

#[test]
fn an_skb_is_not_padded_to_more_than_there_can_be() -> Result {
    let bed = Testbed::options().boot("rtest-overpad")?;
    load_with(&bed, "overpad=1")?;
    send_all(&bed)?;
    unload(&bed)?;
    bed.finish()
}

#[test]
fn gro_merges_no_frames_of_which_the_cpu_can_read_only_some() -> Result {
    /// Frames that one poll receives.
    const BURST: u32 = 8;
    const PAYLOAD: u32 = 1000;
    let bed = Testbed::options().needs_kernel(["RPS"]).boot("rtest-gro")?;
    for (parameters, wanted) in [("loopback=1", 1), ("loopback=1 unreadable=1", BURST.into())] {
        load_with(&bed, parameters)?;
        // Receive packet steering warns of a queue that the core does not use (`get_rps_cpu()`).
        let steering = format!("/sys/class/net/{INTERFACE}/queues/rx-0/rps_cpus");
        bed.write_file(steering, "1")?;
        let interfaces = bed.guest.call(ListInterfaces { ns: Ns::Local })?;
        let rtest = interfaces.into_iter().find(|it| it.name == INTERFACE);
        let mac = rtest.expect("it was loaded").mac;
        let received = || bed.counter(Ns::Local, "Ip", "InReceives");

        let before = received()?;
        for segment in 0..BURST {
            let sequence = 1 + segment * PAYLOAD;
            let payload = [0; PAYLOAD as usize];
            let frame = Frame::segment(bed.peer, bed.local, Family::V4, 1, sequence, &payload)?;
            let mut bytes = frame.into_bytes();
            bytes[..mac.0.len()].copy_from_slice(&mac.0);
            bed.guest.call(SendFrame::on(RTEST, bytes))?;
        }
        let after = bed.wait_until(before + wanted, received)?;
        assert_eq!(after - before, wanted, "{parameters}");
        unload(&bed)?;
    }
    bed.finish()
}

#[test]
fn link_modes_rss_keys_and_coalescing_are_of_the_devices_kind() -> Result {
    const HASH_CRC32: u32 = 1 << 2;
    let bed = Testbed::options().boot("rtest-hardware")?;
    load(&bed)?;

    let link = bed.guest.call(GetLinkModes::on(RTEST))?;
    let modes = ["100000baseSR4/Full", "FIBRE"].map(|mode| (mode.to_owned(), false));
    assert_eq!(
        (
            link.autoneg,
            link.speed,
            link.lanes,
            link.full_duplex,
            link.modes
        ),
        (
            Some(false),
            Some(100_000),
            Some(4),
            Some(true),
            modes.into()
        )
    );

    let rss = || bed.guest.call(GetRss::on(RTEST));
    let now = rss()?;
    assert_eq!(now.hash_function, Some(HASH_CRC32));
    assert_eq!((now.key.len(), now.indirection.len()), (52, 6), "{now:?}");
    let key: Vec<u8> = (0..52).collect();
    bed.guest.call(SetRss::on(
        RTEST,
        RssChange {
            key: Some(key.clone()),
            ..RssChange::default()
        },
    ))?;
    assert_eq!(rss()?.key, key);

    let set = |coalesce: Coalesce| bed.guest.call(SetCoalesce::on(RTEST, None, coalesce));
    let tx = Coalesce {
        tx_usecs: Some(70),
        ..Coalesce::default()
    };
    set(tx)?;
    let now = bed.guest.call(GetCoalesce::on(RTEST, None))?;
    assert_eq!((now.tx_usecs, now.rx_usecs), (Some(70), None), "{now:?}");
    let rx = Coalesce {
        rx_usecs: Some(70),
        ..Coalesce::default()
    };
    assert_refused(set(rx), EINVAL, "coalescing for RX");
    unload(&bed)?;
    bed.finish()
}

#[test]
fn rss_contexts_and_rules_to_them_that_are_left_go_with_their_device() -> Result {
    let bed = Testbed::options().boot("rtest-contexts")?;
    let make = |indirection| {
        let context = CreateRssContext::on(RTEST, indirection);
        bed.guest.call(context)
    };
    for _ in 0..2 {
        load(&bed)?;
        assert_eq!(make(Indirection::Default)?, 1);
        assert_eq!(make(Indirection::Queues(vec![1, 2, 1, 2, 1, 2]))?, 2);
        assert_refused(make(Indirection::Default), EBUSY, "a third context");
        let rule = FlowRule {
            action: FlowAction::RssContext(2),
            ..FlowRule::all(FlowType::Tcp4, 0)
        };
        let insert = InsertFlowRule::on(RTEST, RulePlace::Any, rule);
        let place = bed.guest.call(insert)?;
        let rules = bed.guest.call(ListFlowRules::on(RTEST))?;
        assert_eq!(rules.rules, [(place, rule)]);
        unload(&bed)?;
    }
    bed.finish()
}
