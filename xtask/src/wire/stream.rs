// SPDX-License-Identifier: MIT OR Apache-2.0

//! Guests with one processor, and streams in them that are timed.

use std::time::Instant;

use anyhow::Result;
use cases::{Driver, Family, Testbed};
use fs_err as fs;
use protocol::{
    MeasuredSink, MeasuredSource, kernel::WriteFile, measure::MeasuredSinkReport,
    rings::TcpDataSplit,
};
use vm::{Images, Link, Topology};

use crate::bench::measure::{ACCELERATOR_MIB, QUEUE, RING, path, went_its_way};
use crate::bench::scenario::{ACCELERATOR_4K, ACCELERATOR_16K, COPIED, Way, ZCRX_4K, ZCRX_16K};
use crate::failure::of_case as error;

/// Most bytes of a send buffer where wires have a link: less is in flight than the link's queue of 1000
/// frames takes. TCP would fill that, lose its end, and wait in the middle of a window for what is missing.
const SEND_BUFFER: u32 = 3 << 19;
const FRAMES: u32 = 800;
/// Bytes of a receive buffer there, from the beginning: TCP lets it grow with what comes in a round trip,
/// which is so little on a slow wire that the sender would have to go on within a tenth of a second.
const RECEIVE_BUFFER: u32 = 6 << 20;
/// Bytes of each read and write.
const IO: u32 = 64 << 10;

/// Largest MTU whose packets are received into buffers of 4 KiB, and not of 16 KiB. The kernel takes a
/// buffer for full, whatever is in it: of more than a packet needs, windows get small.
const SMALL: u32 = 4096;

/// How payload comes from one dma-buf and goes to another, both in the accelerator; or neither is one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Ordinary,
    Copied,
    Devmem,
    Zcrx,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary TCP",
            Self::Copied => "copied",
            Self::Devmem => "devmem",
            Self::Zcrx => "zcrx",
        }
    }

    /// What the sender does, and the receiver.
    const fn ways(self, mtu: u32) -> (Way, Way) {
        match (self, mtu <= SMALL) {
            (Self::Ordinary, _) => (Way::Ordinary, Way::Ordinary),
            (Self::Copied, _) => (COPIED, COPIED),
            (Self::Devmem, true) => (ACCELERATOR_4K, ACCELERATOR_4K),
            (Self::Devmem, false) => (ACCELERATOR_16K, ACCELERATOR_16K),
            (Self::Zcrx, true) => (ACCELERATOR_4K, ZCRX_4K),
            (Self::Zcrx, false) => (ACCELERATOR_16K, ZCRX_16K),
        }
    }
}

/// Bytes of a stream: those before the window that is timed, in it, and after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) before: u64,
    pub(crate) window: u64,
    pub(crate) after: u64,
}

/// Boots a guest with one processor, an accelerator and both NICs up; headers are not split.
///
/// # Errors
///
/// Those of booting.
pub(crate) fn boot(
    images: &Images,
    name: &str,
    driver: Driver,
    mtu: u32,
    link: Option<Link>,
) -> Result<Testbed> {
    let mut options = Testbed::options()
        .driver(driver)
        .cpus(1)
        .mtu(mtu)
        .transmit_queue(QUEUE)
        .accelerator(Topology::Switch)
        .machine(|machine| machine.accelerator_memory_mib(ACCELERATOR_MIB));
    if let Some(link) = link {
        options = options.link(link);
    }
    let bed = options.boot_images(images, name).map_err(error)?;
    for station in bed.stations() {
        bed.steer(station, &[QUEUE]).map_err(error)?;
    }
    if link.is_some() {
        let send = SEND_BUFFER.min(FRAMES * mtu);
        for (ns, name, contents) in [
            (bed.peer.ns, "tcp_wmem", format!("4096 65536 {send}")),
            (
                bed.local.ns,
                "tcp_rmem",
                format!("4096 {RECEIVE_BUFFER} {RECEIVE_BUFFER}"),
            ),
        ] {
            bed.guest.call(WriteFile::new(
                ns,
                format!("/proc/sys/net/ipv4/{name}"),
                contents,
            ))?;
        }
    }
    Ok(bed)
}

/// A stream that went through.
#[derive(Clone)]
pub(crate) struct Passed {
    /// What the receiver says.
    pub(crate) sink: MeasuredSinkReport,
    /// The share of the time in which something on the host waited for a processor.
    pub(crate) busy: f64,
}

/// Has a stream go through.
///
/// # Errors
///
/// When the guest fails, or the stream did not go its way.
pub(crate) fn pass(bed: &Testbed, mtu: u32, kind: Kind, extent: Extent) -> Result<Passed> {
    let (tx, rx) = kind.ways(mtu);
    let split = match rx.places_payload() {
        true => TcpDataSplit::On,
        false => TcpDataSplit::Off,
    };
    bed.set_header_split(bed.local, split).map_err(error)?;
    for station in bed.stations() {
        bed.set_receive_ring(station, RING).map_err(error)?;
    }
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let at = stream.to.socket(stream.family, stream.port);
    let sink = bed.guest.start(MeasuredSink {
        ns: stream.to.ns,
        from: stream.from.ns,
        interface: stream.to.name(),
        listen: at,
        path: path(rx, true),
        flows: 1,
        token_batch: None,
        read: IO,
        skip: extent.before,
        window: extent.window,
    })?;
    let (start, before) = (Instant::now(), waited());
    let source = bed.guest.start(MeasuredSource {
        ns: stream.from.ns,
        interface: stream.from.name(),
        connect: at,
        path: path(tx, false),
        flows: 1,
        write: IO,
        bytes: extent.before + extent.window + extent.after,
        at_round_time: false,
    })?;
    let (sink, source) = (sink.join()?, source.join()?);
    went_its_way(&sink, &source)?;
    let waited = before
        .zip(waited())
        .map_or(0.0, |(before, now)| now - before);
    Ok(Passed {
        sink,
        busy: waited / start.elapsed().as_secs_f64(),
    })
}

/// Seconds in which something on the host waited for a processor, since it booted; `None` where the kernel
/// does not count them.
fn waited() -> Option<f64> {
    let text = fs::read_to_string("/proc/pressure/cpu").ok()?;
    let some = text.lines().find(|line| line.starts_with("some"))?;
    let (_, total) = some.rsplit_once("total=")?;
    Some(total.parse::<f64>().ok()? / 1e6)
}
