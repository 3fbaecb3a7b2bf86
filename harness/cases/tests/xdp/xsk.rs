// SPDX-License-Identifier: MIT OR Apache-2.0

//! Zero-copy XDP sockets, which the device itself writes to and reads from.

use cases::{Ability, Result, Testbed, assert_fails_saying, assert_refused, ethernet};
use libc::{EBUSY, EINVAL, ESRCH};
use protocol::{
    Command, Memory, XdpAction, XdpSocket, ethtool::TestSelf, kernel::UnloadModule,
    rings::TcpDataSplit, xsk::XdpSocketReport,
};
use vm::JobHandle;

use crate::{MIB, OTHER, OURS, attach, detach, exchange, frame, frames, ping, program};

/// A socket bound to a queue of the NIC under test.
fn socket(bed: &Testbed, queue: u32) -> XdpSocket {
    bed.xdp_socket(queue, 128)
}

fn start<'g>(bed: &'g Testbed, socket: &XdpSocket) -> Result<JobHandle<'g, XdpSocket>> {
    Ok(bed.guest.start(socket.clone())?)
}

/// Closes the socket. The kernel releases the queue in the background.
fn close(bed: &Testbed, job: JobHandle<'_, XdpSocket>) -> Result<XdpSocketReport> {
    let report = job.stop()?;
    bed.wait_xsk_gone(bed.local)?;
    Ok(report)
}

/// Registers: where the device takes the next buffer of queue 0, and where the driver posts it.
const POSTED: [&str; 2] = ["rx_head_0", "rx_tail_0"];

/// Waits until queue 0 has buffers: new rings get those of a socket once the queue is polled.
fn wait_buffers(bed: &Testbed) -> Result {
    bed.wait_until(1, || {
        let [head, tail] = POSTED.map(|name| bed.register(bed.local, name));
        Ok((head? != tail?).into())
    })?;
    Ok(())
}

/// Sends frames to the socket on queue 0, and checks that all come back.
fn echoes(bed: &Testbed, what: &str) -> Result<u64> {
    wait_buffers(bed)?;
    let sent = frames(bed, 1500);
    let mut expected = sent.clone();
    for frame in &mut expected {
        frame.splice(..14, ethernet(bed.local.mac(), bed.peer.mac(), OURS));
    }
    let count = sent.len() as u64;
    let back = exchange(bed, sent, bed.peer, OURS)?;
    assert!(back == expected, "{what}: all came back");
    Ok(count)
}

#[test]
fn the_device_writes_to_a_sockets_memory_and_sends_from_it() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Xsk])
        .needs_registers(POSTED)
        .needs_counters(["rx_xsk_copied", "tx_xsk"])
        .boot("xsk-echo")?;
    let statistic = |name| bed.statistic(bed.local, name);
    let pools = || -> Result<usize> { Ok(bed.page_pools(bed.local)?.len()) };
    let before = pools()?;

    for (chunk, need_wakeup, runts) in [
        (4096, true, false),
        (2048, true, false),
        (2048, false, true),
        (4096, true, true),
    ] {
        let what = format!("{chunk} bytes, wakeup: {need_wakeup}, runts: {runts}");
        let [redirected, transmitted, refused, copied] = [
            "rx_xdp_redirect",
            "tx_xsk",
            "tx_xsk_dropped",
            "rx_xsk_copied",
        ]
        .map(statistic);
        let spec = XdpSocket {
            chunk,
            need_wakeup,
            runts,
            ..socket(&bed, 0)
        };
        let job = start(&bed, &spec)?;
        assert_eq!(pools()?, before - 1, "{what}: the queue has no pages");
        attach(&bed, program(XdpAction::RedirectToSocket(0)))?;

        let mut count = 0;
        for _ in 0..4 {
            count += echoes(&bed, &what)?;
        }
        // Other frames go up the stack, as copies. They also arrive on queue 0, like all non-IP
        // frames.
        let others: Vec<_> = (0..5).map(|seed| frame(&bed, OTHER, seed, 1000)).collect();
        assert!(exchange(&bed, others.clone(), bed.local, OTHER)? == others);
        assert!(statistic("rx_xsk_copied")? >= copied? + 5, "{what}");
        ping(&bed, 1400)?;

        let report = close(&bed, job)?;
        let all = if runts { 2 * count } else { count };
        assert!(report.zero_copy, "{what}");
        assert_eq!(
            (report.received, report.sent, report.completed),
            (count, all, all),
            "{what}: {report:?}"
        );
        assert_eq!(report.misplaced, 0, "{what}: {report:?}");
        assert_eq!(statistic("rx_xdp_redirect")?, redirected? + count, "{what}");
        assert_eq!(statistic("tx_xsk")?, transmitted? + count, "{what}");
        assert_eq!(
            statistic("tx_xsk_dropped")?,
            refused? + all - count,
            "{what}"
        );
        detach(&bed)?;
        bed.wait_until(before as u64, || Ok(pools()? as u64))?;
        ping(&bed, 1400)?;
    }
    bed.finish()
}

#[test]
fn a_queue_of_a_sockets_goes_on_for_all_others() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Xsk])
        .needs_registers(POSTED)
        .boot("xsk-others")?;
    let jobs = [
        start(&bed, &socket(&bed, 0))?,
        start(&bed, &socket(&bed, 1))?,
    ];
    bed.transfer_both_ways(MIB)?;
    // Programs come and go alongside it, including one that does not use the socket.
    attach(&bed, program(XdpAction::RedirectToSocket(0)))?;
    bed.transfer_both_ways(MIB)?;
    echoes(&bed, "beside others")?;
    attach(&bed, program(XdpAction::Transmit))?;
    echoes(&bed, "by XDP_TX")?;
    detach(&bed)?;
    bed.transfer_both_ways(MIB)?;
    for job in jobs {
        let report = job.stop()?;
        assert!(report.zero_copy && report.misplaced == 0, "{report:?}");
        assert_eq!(report.sent, report.completed, "{report:?}");
    }
    bed.wait_xsk_gone(bed.local)?;
    bed.transfer_both_ways(MIB)?;
    bed.finish()
}

#[test]
fn a_socket_goes_on_whatever_else_is_changed() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Xsk])
        .needs_registers(POSTED)
        .cpus(4)
        .boot("xsk-changes")?;
    let job = start(&bed, &socket(&bed, 0))?;
    attach(&bed, program(XdpAction::RedirectToSocket(0)))?;
    echoes(&bed, "at first")?;

    for change in [
        "rings",
        "MTU",
        "down and up",
        "channels",
        "self-test",
        "sleep",
    ] {
        match change {
            "rings" => bed.set_receive_ring(bed.local, 64)?,
            "sleep" => bed.sleep_and_wake()?,
            "MTU" => bed.set_mtu(bed.local, 2000)?,
            "down and up" => bed.down_and_up(bed.local)?,
            "channels" => bed.set_channels(bed.local, 2)?,
            "self-test" => {
                bed.guest.call(TestSelf::on(bed.local, true))?;
            }
            _ => unreachable!("all are above"),
        }
        bed.wait_carrier(true)?;
        echoes(&bed, change)?;
    }

    // Changes that the socket rules out are refused, and change nothing.
    assert_fails_saying(bed.set_mtu(bed.local, 9000), "Invalid argument");
    let open = || bed.guest.start(socket(&bed, 0));
    assert_refused(open(), EBUSY, "a second socket");
    detach(&bed)?;
    let split = bed.set_header_split(bed.local, TcpDataSplit::On);
    assert_fails_saying(split, "AF_XDP");
    attach(&bed, program(XdpAction::RedirectToSocket(0)))?;
    echoes(&bed, "after what was refused")?;
    let report = close(&bed, job)?;
    assert_eq!((report.sent, report.misplaced), (report.completed, 0));
    detach(&bed)?;

    // Nor can a socket be bound where these settings rule it out.
    bed.set_mtu(bed.local, 9000)?;
    assert_refused(open(), EINVAL, "a socket for long frames");
    bed.set_mtu(bed.local, 1500)?;
    bed.set_header_split(bed.local, TcpDataSplit::On)?;
    assert_refused(open(), EBUSY, "a socket while headers are split");
    let bound = bed.bind(bed.local, 1, Memory::Udmabuf, MIB)?;
    assert_refused(open(), EBUSY, "a socket beside a binding");
    bound.stop()?;

    // In copy mode it needs nothing from the driver.
    bed.set_header_split(bed.local, TcpDataSplit::Off)?;
    let copies = XdpSocket {
        copy: true,
        ..socket(&bed, 0)
    };
    let job = start(&bed, &copies)?;
    attach(&bed, program(XdpAction::RedirectToSocket(0)))?;
    echoes(&bed, "with copies")?;
    assert!(!close(&bed, job)?.zero_copy);
    bed.finish()
}

#[test]
fn a_queue_returns_to_pages_whatever_takes_the_socket_away() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Xsk])
        .needs_registers(POSTED)
        .boot("xsk-away")?;

    // It is bound and closed while the interface is down.
    bed.set_interface(bed.local, false)?;
    let job = start(&bed, &socket(&bed, 0))?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    attach(&bed, program(XdpAction::RedirectToSocket(0)))?;
    echoes(&bed, "bound while down")?;
    bed.set_interface(bed.local, false)?;
    job.stop()?;
    detach(&bed)?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    bed.wait_xsk_gone(bed.local)?;
    ping(&bed, 1400)?;

    // Its owner is killed.
    let job = bed.guest.start_process(socket(&bed, 0))?;
    wait_buffers(&bed)?;
    ping(&bed, 1400)?;
    job.tell(Command::Kill)?;
    assert_refused(job.join(), ESRCH, "joining a killed owner");
    bed.wait_xsk_gone(bed.local)?;
    let job = start(&bed, &socket(&bed, 0))?;
    attach(&bed, program(XdpAction::RedirectToSocket(0)))?;
    echoes(&bed, "after a kill")?;

    // The driver is unbound while the socket is open, or is being closed.
    let device = bed.pci_device(bed.local)?;
    let tell = |what| bed.tell_driver(bed.driver(), what, &device);
    tell("unbind")?;
    job.tell(Command::Stop)?;
    let report = job.join()?;
    assert_eq!(report.misplaced, 0, "{report:?}");
    for _ in 0..5 {
        tell("bind")?;
        bed.take_in(bed.local)?;
        bed.set_up_station(bed.local)?;
        bed.wait_carrier(true)?;
        let job = bed.guest.start_process(socket(&bed, 0))?;
        job.tell(Command::Kill)?;
        tell("unbind")?;
        assert_refused(job.join(), ESRCH, "joining a killed owner");
    }
    bed.guest.call(UnloadModule::new(bed.driver()))?;
    bed.finish()
}
