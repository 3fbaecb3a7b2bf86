// SPDX-License-Identifier: MIT OR Apache-2.0

//! What it costs to restart a receive queue, and what the other queues lose meanwhile.

use anyhow::{Context, Result, ensure};
use cases::{Driver, Family, Testbed, finish};
use protocol::{
    Memory, Restarts,
    kernel::{ListFunctions, Symbol},
    netdev::QueueKind,
};
use vm::Images;

use super::profile::demangled;
use crate::failure::of_case as error;

/// The queue that is restarted.
const QUEUE: u32 = 1;
/// Restarts without traffic, each of which is a window.
const COUNTED: u32 = 20;
/// Restarts with traffic.
pub(crate) const RESTARTS: u32 = 1000;
/// Receive descriptors: more than TCP has packets of this MTU in flight, so that what is lost is
/// not lost to a processor that is busy.
const RING: u32 = 1024;
pub(crate) const MTU: u32 = 9000;
/// Enough to fill the ring with pages.
const DMABUF: u64 = 8 << 20;
/// Bytes of a write, and the pause behind it: the processor has time for both, traffic and restarts.
pub(crate) const WRITE: u32 = 16 << 10;
const PAUSE_US: u64 = 500;

/// What was measured.
pub(crate) struct Measurement {
    /// Instructions of each restart without traffic, from stop to running, sorted.
    pub(crate) instructions: Vec<u64>,
    /// Packets that came in while the queue was restarted again and again.
    pub(crate) packets: u64,
    /// Packets that the peer sent and that did not come in.
    pub(crate) lost: u64,
}

/// Boots a guest and measures.
///
/// # Errors
///
/// When the guest fails, or no traffic ran.
pub(crate) fn measure(images: &Images) -> Result<Measurement> {
    let bed = Testbed::options()
        .driver(Driver::Rigb)
        .counted()
        .mtu(MTU)
        .header_split()
        .boot_images(images, "bench-restart")
        .map_err(error)?;
    bed.set_receive_ring(bed.local, RING).map_err(error)?;

    let modules = bed.guest.call(ListFunctions::default())?;
    bed.guest.windows_between(Some(unavailable(&modules)?))?;
    restart(&bed, COUNTED)?;
    bed.guest.windows_between(None)?;
    let mut instructions = Vec::new();
    for number in 0..COUNTED {
        let total = bed.guest.window(number)?.total();
        instructions.push(total.instructions + total.reps);
    }
    instructions.sort_unstable();

    let (packets, lost) = disturb(&bed)?;
    bed.finish().map_err(error)?;
    Ok(Measurement {
        instructions,
        packets,
        lost,
    })
}

fn restart(bed: &Testbed, restarts: u32) -> Result<()> {
    let report = bed
        .guest
        .start(Restarts {
            ns: bed.local.ns,
            interface: bed.local.name(),
            queue: QUEUE,
            memory: Memory::Udmabuf,
            dmabuf_bytes: DMABUF,
            restarts,
        })?
        .join()?;
    ensure!(
        report.error.is_none() && report.restarts == restarts,
        "the queue was not restarted {restarts} times: {report:?}"
    );
    Ok(())
}

/// Restarts the queue while all others receive; returns the packets that came, and those that did not.
fn disturb(bed: &Testbed) -> Result<(u64, u64)> {
    let received = || bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets");
    let queues = u32::try_from(received().map_err(error)?.len())?;
    let others: Vec<u32> = (0..queues).filter(|&queue| queue != QUEUE).collect();
    bed.steer(bed.local, &others).map_err(error)?;
    let before = bed.packets_when_quiet().map_err(error)?;

    let mut flows = Vec::new();
    for &queue in &others {
        let stream = bed.stream(bed.peer, bed.local, Family::V4);
        let stream = stream.reaching(bed, queue).map_err(error)?;
        let mut sink = stream.sink(bed).map_err(error)?;
        let source = stream
            .source(bed, None, &[WRITE], PAUSE_US)
            .map_err(error)?;
        sink.wait_bytes(u64::from(WRITE))?;
        flows.push((source, sink));
    }
    let started = received().map_err(error)?;
    restart(bed, RESTARTS)?;
    let ended = received().map_err(error)?;
    let mut packets = 0;
    for &queue in &others {
        let came = ended[queue as usize] - started[queue as usize];
        ensure!(
            came >= u64::from(RESTARTS),
            "queue {queue} received {came} packets during {RESTARTS} restarts: that proves little"
        );
        packets += came;
    }
    for (source, sink) in flows {
        finish(source, sink).map_err(error)?;
    }
    let after = bed.packets_when_quiet().map_err(error)?;
    let [came, sent] = [0, 1].map(|of| after[of] - before[of]);
    Ok((packets, sent.saturating_sub(came)))
}

/// Where the queue stops, and where it runs again: the core asks the driver to stop it, to start it
/// on new memory, and then to free the old (netdev_rx_queue_reconfig in net/core/netdev_rx_queue.c).
fn unavailable(modules: &[Symbol]) -> Result<(u64, u64)> {
    let operation = |name: &str| -> Result<u64> {
        let found = modules.iter().find(|symbol| {
            let function = demangled(&symbol.name);
            function.contains("queue::Table<") && function.ends_with(name)
        });
        let found = found.with_context(|| format!("no function {name} of rigb's queues"))?;
        Ok(found.address)
    };
    Ok((operation("::stop")?, operation("::free")?))
}
