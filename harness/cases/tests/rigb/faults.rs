// SPDX-License-Identifier: MIT OR Apache-2.0

//! Each allocation that the driver makes in an operation fails in turn, until the operation
//! completes without a failure. The previous state keeps working, and nothing is leaked: leaks are
//! checked when the machine ends.

use std::ops::Range;

use cases::{Driver, Family, Result, Testbed};
use libc::ENOMEM;
use protocol::{
    Command, Job, JobId, Join, Memory, Request, StartJob, Tell, XdpAction, XdpProgram,
    kernel::{Inject, Injected, ListFunctions, Symbol},
    link::{SetMtu, SetUp},
    netdev::ListQueues,
    rings::{GetChannels, GetRings, RingChange, Rings, SetChannels, SetRings, TcpDataSplit},
    xdp::{AttachXdp, DetachXdp},
};

const MIB: u64 = 1 << 20;

/// Descriptors of a small ring, and of another: each buffer of a ring is an allocation.
const SMALL: u32 = 80;
const OTHER: u32 = 88;

/// More allocations than any operation on small rings makes.
const MANY: u32 = 5000;

/// A testbed on which only allocations of the driver can fail.
fn testbed(name: &str) -> Result<Testbed> {
    testbed_with(name, &[])
}

/// The same, on a kernel that has these options, too.
fn testbed_with(name: &str, kernel_options: &[&'static str]) -> Result<Testbed> {
    let options = Testbed::options().needs_kernel([
        "FAILSLAB",
        "FAIL_PAGE_ALLOC",
        "FAULT_INJECTION_DEBUG_FS",
        "FAULT_INJECTION_STACKTRACE_FILTER",
    ]);
    let bed = options
        .needs_kernel(kernel_options.iter().copied())
        .header_split()
        .boot(name)?;
    bed.set_receive_ring(bed.local, SMALL)?;
    // A carrier that comes meanwhile is noted with a reference, whose tracker may find no memory
    // (`linkwatch_add_event()`).
    bed.guest
        .allow_log(&["ref_tracker: memory allocation failure"]);
    // DMA debugging turns itself off when it is short of memory, and complains.
    let functions = bed.guest.call(ListFunctions {
        of_kernel: Some("debug_dma_".to_owned()),
    })?;
    let driver = text(&functions, Some(Driver::Rigb.name())).expect("it is loaded");
    let debugging = text(&functions, None).unwrap_or_default();
    for kind in ["failslab", "fail_page_alloc"] {
        for (file, value) in [
            ("verbose", "0"),
            // Also fail allocations that may sleep.
            ("ignore-gfp-wait", "N"),
            // Only fail those with the driver in their backtrace.
            ("require-start", &format!("{:#x}", driver.start)),
            ("require-end", &format!("{:#x}", driver.end)),
            ("reject-start", &format!("{:#x}", debugging.start)),
            ("reject-end", &format!("{:#x}", debugging.end)),
        ] {
            write(&bed, &format!("{kind}/{file}"), value)?;
        }
    }
    write(&bed, "fail_page_alloc/min-order", "0")?;
    Ok(bed)
}

/// The address range of a module's functions, or of the kernel's own.
fn text(functions: &[Symbol], module: Option<&str>) -> Option<Range<u64>> {
    /// The last function is shorter than this.
    const LAST: u64 = 0x1000;
    let of_module = |symbol: &&Symbol| symbol.module.as_deref() == module;
    let addresses = functions.iter().filter(of_module);
    let addresses = addresses.map(|symbol| symbol.address);
    let (first, last) = (addresses.clone().min()?, addresses.max()?);
    Some(first..last + LAST)
}

fn write(bed: &Testbed, file: &str, contents: &str) -> Result {
    bed.write_file(format!("/sys/kernel/debug/{file}"), contents)
}

/// Makes a request with its first allocation failing, then its second, and so on, until none fails.
/// Each time `after` gets the result, and undoes it. Returns how often the request failed.
fn fail_each(
    bed: &Testbed,
    request: impl Fn() -> Request,
    mut after: impl FnMut(&Injected) -> Result,
) -> Result<u32> {
    let mut failures = 0;
    for nth in 1..MANY {
        let injected = bed.guest.call(Inject {
            nth,
            request: Box::new(request()),
        })?;
        if let Err(failure) = &injected.reply {
            assert!(injected.fired, "it failed by itself: {failure}");
            assert_eq!(failure.errno, Some(ENOMEM), "allocation {nth}: {failure}");
            failures += 1;
        }
        after(&injected)?;
        if !injected.fired {
            println!("{failures} of {} failed allocations failed it", nth - 1);
            assert!(failures > 0, "no allocation was one that the request needs");
            return Ok(failures);
        }
    }
    panic!("more than {MANY} allocations");
}

/// The request that starts a job.
fn start(job: impl Into<Job>) -> Request {
    let start = StartJob {
        job: job.into(),
        process: false,
    };
    start.into()
}

/// Ends a job that a request has started.
fn stop(bed: &Testbed, job: &serde_json::Value) -> Result {
    let job: JobId = serde_json::from_value(job.clone())?;
    bed.guest.call(Tell {
        job,
        command: Command::Stop,
    })?;
    bed.guest.call(Join { job })?;
    Ok(())
}

fn passes_traffic(bed: &Testbed) -> Result {
    bed.ping(bed.peer, bed.local, Family::V4, 1, 1000)
}

/// Ends a machine whose interface works, after checking that all memory is returned.
fn finish(bed: Testbed) -> Result {
    bed.wait_carrier_of(bed.local, true)?;
    bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;
    bed.set_interface(bed.local, false)?;
    bed.wait_pools_gone(bed.local)?;
    bed.finish()
}

fn rings(bed: &Testbed) -> Result<Rings> {
    Ok(bed.guest.call(GetRings::on(bed.local))?)
}

fn receive_ring(bed: &Testbed, rx: u32) -> SetRings {
    SetRings::on(
        bed.local,
        RingChange {
            rx: Some(rx),
            ..RingChange::default()
        },
    )
}

#[test]
#[ignore = "needs a kernel with fault injection"]
fn an_interface_that_has_no_memory_to_come_up_stays_down_and_comes_up_later() -> Result {
    let bed = testbed("fault-open")?;
    bed.set_interface(bed.local, false)?;
    let up = || {
        let up = SetUp::on(bed.local, true);
        up.into()
    };
    fail_each(&bed, up, |injected| {
        if injected.reply.is_ok() {
            bed.set_interface(bed.local, false)?;
        }
        Ok(())
    })?;
    bed.set_interface(bed.local, true)?;
    finish(bed)
}

#[test]
#[ignore = "needs a kernel with fault injection"]
fn rings_that_there_is_no_memory_for_leave_the_old_ones_running() -> Result {
    let bed = testbed("fault-rings")?;
    let other = || receive_ring(&bed, OTHER).into();
    fail_each(&bed, other, |injected| {
        let now = if injected.reply.is_ok() { OTHER } else { SMALL };
        assert_eq!(rings(&bed)?.rx, Some(now));
        passes_traffic(&bed)?;
        bed.set_receive_ring(bed.local, SMALL)
    })?;
    finish(bed)
}

#[test]
#[ignore = "needs a kernel with fault injection"]
fn rings_that_there_is_no_memory_for_leave_a_queue_bound() -> Result {
    let bed = testbed("fault-rings-bound")?;
    bed.steer(bed.local, &[1])?;
    let bound = bed.bind(bed.local, 1, Memory::Udmabuf, MIB)?;
    let binding = || -> Result<Option<u32>> {
        let queues = bed.guest.call(ListQueues::on(bed.local))?;
        Ok(queues.iter().find_map(|queue| queue.dmabuf))
    };
    let before = binding()?;
    assert!(before.is_some());
    let other = || receive_ring(&bed, OTHER).into();
    fail_each(&bed, other, |injected| {
        let now = if injected.reply.is_ok() { OTHER } else { SMALL };
        assert_eq!(rings(&bed)?.rx, Some(now));
        assert_eq!(binding()?, before);
        // Traffic other than TCP: it goes to queue 0.
        passes_traffic(&bed)?;
        bed.set_receive_ring(bed.local, SMALL)
    })?;
    bound.stop()?;
    let received =
        bed.stream(bed.peer, bed.local, Family::V4)
            .receive_devmem(&bed, 1, MIB, MIB, |_| {})?;
    assert_eq!(received.verified, MIB);
    finish(bed)
}

#[test]
#[ignore = "needs a kernel with fault injection"]
fn queue_pairs_that_there_is_no_memory_for_leave_the_others_running() -> Result {
    let bed = testbed("fault-channels")?;
    let set = |combined| SetChannels::on(bed.local, combined);
    bed.guest.call(set(1))?;
    let more = || set(2).into();
    fail_each(&bed, more, |injected| {
        let now = bed.guest.call(GetChannels::on(bed.local))?;
        let wanted = if injected.reply.is_ok() { 2 } else { 1 };
        assert_eq!(now.combined, wanted);
        passes_traffic(&bed)?;
        Ok(bed.guest.call(set(1))?)
    })?;
    finish(bed)
}

#[test]
#[ignore = "needs a kernel with fault injection"]
fn an_mtu_that_there_is_no_memory_for_leaves_the_old_one() -> Result {
    let bed = testbed("fault-mtu")?;
    // With header split on, payload buffers serve every MTU, and nothing is allocated.
    bed.set_header_split(bed.local, TcpDataSplit::Off)?;
    let jumbo = || {
        let jumbo = SetMtu::on(bed.local, 9000);
        jumbo.into()
    };
    fail_each(&bed, jumbo, |injected| {
        let wanted = if injected.reply.is_ok() { 9000 } else { 1500 };
        assert_eq!(bed.interface(bed.local)?.mtu, wanted);
        passes_traffic(&bed)?;
        bed.set_mtu(bed.local, 1500)
    })?;
    finish(bed)
}

#[test]
#[ignore = "needs a kernel with fault injection"]
fn a_bind_that_there_is_no_memory_for_leaves_the_queue_as_it_was() -> Result {
    let bed = testbed("fault-bind")?;
    bed.steer(bed.local, &[1])?;
    let bind = || start(bed.binding(bed.local, 1, Memory::Udmabuf, MIB));
    fail_each(&bed, bind, |injected| {
        if let Ok(job) = &injected.reply {
            stop(&bed, job)?;
        }
        let queues = bed.guest.call(ListQueues::on(bed.local))?;
        assert!(queues.iter().all(|q| q.dmabuf.is_none()), "{queues:?}");
        bed.transfer(bed.peer, bed.local, Family::V4, 64 << 10)?;
        Ok(())
    })?;
    finish(bed)
}

#[test]
#[ignore = "needs a kernel with fault injection"]
fn an_xdp_socket_that_there_is_no_memory_for_leaves_the_queue_its_pages() -> Result {
    let bed = testbed_with("fault-xsk", &["XDP_SOCKETS"])?;
    bed.set_header_split(bed.local, TcpDataSplit::Off)?;
    bed.steer(bed.local, &[0])?;
    let socket = || start(bed.xdp_socket(0, 64));
    fail_each(&bed, socket, |injected| {
        if let Ok(job) = &injected.reply {
            // The socket may not have posted buffers yet: lost packets are retransmitted.
            bed.transfer(bed.peer, bed.local, Family::V4, 64 << 10)?;
            stop(&bed, job)?;
        }
        bed.wait_xsk_gone(bed.local)?;
        passes_traffic(&bed)
    })?;
    finish(bed)
}

#[test]
#[ignore = "needs a kernel with fault injection"]
fn a_program_that_there_is_no_memory_for_leaves_the_queues_without_one() -> Result {
    let bed = testbed_with("fault-xdp", &["BPF_SYSCALL"])?;
    bed.set_header_split(bed.local, TcpDataSplit::Off)?;
    let attach = || {
        let attach = AttachXdp::on(
            bed.local,
            XdpProgram {
                ethertype: None,
                action: XdpAction::Pass,
                fragments: false,
            },
        );
        attach.into()
    };
    fail_each(&bed, attach, |injected| {
        passes_traffic(&bed)?;
        assert_eq!(bed.interface(bed.local)?.xdp, injected.reply.is_ok());
        bed.guest.call(DetachXdp::on(bed.local))?;
        // Back to rings without headroom for a program.
        bed.set_receive_ring(bed.local, OTHER)?;
        bed.set_receive_ring(bed.local, SMALL)
    })?;
    finish(bed)
}
