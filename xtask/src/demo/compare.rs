// SPDX-License-Identifier: MIT OR Apache-2.0

//! The same transfer into the accelerator twice: received there, and received in ordinary memory
//! and copied. In both the host makes the payload up and a NIC sends it from accelerator memory, so
//! that the receiver alone can leave it in RAM; and one processor does it, whose loads and stores
//! are counted.

use anyhow::{Context, Result};
use cases::{Driver, Family, Stream, Testbed, place};
use protocol::{
    Command,
    measure::{Edge, MarkWindow},
    memory::PhysicalRange,
};
use serde::Serialize;
use vm::counter::Watch;
use vm::{Images, Topology, traces};

use super::stage::{Logs, MTU, QUEUE, Stage, Timer};
use crate::failure::of_case as error;

/// Bytes of the transfer: an emulated processor that is counted is slow.
const BYTES: u64 = 8 << 20;
/// What is watched: where the payload comes from, and where it goes.
const ACCELERATOR: &str = "accelerator";
/// Payload that a receiver in ordinary memory leaves there at least: its buffer alone has more.
const LEFT_IN_RAM: u64 = 64 << 10;

/// Both ways of one transfer.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    /// Payload bytes of each.
    pub(super) bytes: u64,
    pub(super) devmem: Way,
    pub(super) copy: Way,
    pub(super) logs: Logs,
}

/// What one way did with the payload.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    /// Payload bytes that the host found right in the accelerator's memory.
    pub(super) in_accelerator: u64,
    /// Payload bytes that the host found in the guest's RAM.
    pub(super) in_ram: u64,
    /// Payload that the processor loaded from the accelerator's memory, in bytes.
    pub(super) loaded: u64,
    /// Payload that it stored there, in bytes.
    pub(super) stored: u64,
}

impl Compared {
    /// Whether device memory TCP left the payload alone, and whether that could have been seen
    /// otherwise.
    pub(super) fn holds(&self) -> bool {
        let Self { devmem, copy, .. } = self;
        let arrived = [devmem, copy].map(|way| way.in_accelerator) == [self.bytes; 2];
        let untouched = (devmem.in_ram, devmem.loaded, devmem.stored) == (0, 0, 0);
        arrived && untouched && copy.in_ram >= LEFT_IN_RAM && copy.stored >= self.bytes
    }
}

/// Boots a guest of its own, and runs both in it.
///
/// # Errors
///
/// When the guest fails, or a transfer does not end as it must.
pub(super) fn run(images: Images, driver: Driver, stages: &mut Vec<Stage>) -> Result<Compared> {
    let stage = Timer::begin("boot again", "one processor, loads and stores counted");
    let bed = Testbed::options()
        .driver(driver)
        .counted()
        .mtu(MTU)
        .header_split()
        .accelerator(Topology::Switch)
        .boot_images(&images, "run-counted")
        .map_err(error)?;
    bed.steer(bed.local, &[QUEUE]).map_err(error)?;
    stages.push(stage.done("the same with one processor, whose loads and stores are counted"));

    let size = indicatif::HumanBytes(BYTES);
    let stage = Timer::begin("devmem", "receiving in the accelerator");
    let devmem = received_there(&bed)?;
    stages.push(stage.done(&format!("{size} received in the accelerator")));
    let stage = Timer::begin("copy", "receiving in RAM, copying");
    let copy = copied_there(&bed)?;
    stages.push(stage.done(&format!("{size} received in RAM and copied there")));

    let verdict = bed.verdict().map_err(error)?;
    Ok(Compared {
        bytes: BYTES,
        devmem,
        copy,
        logs: Logs::of(verdict),
    })
}

fn stream(bed: &Testbed) -> Stream {
    bed.stream(bed.peer, bed.local, Family::V4)
        .in_accelerator()
        .unpredictable()
}

fn mark(bed: &Testbed, edge: Edge) -> Result<()> {
    Ok(bed.guest.call(MarkWindow { edge })?)
}

fn watch(bed: &Testbed, dmabufs: [&[PhysicalRange]; 2]) -> Result<()> {
    let watches = dmabufs.map(|ranges| Watch::dmabuf(ACCELERATOR, ranges));
    Ok(bed.guest.watch(&watches.concat())?)
}

/// By device memory TCP.
fn received_there(bed: &Testbed) -> Result<Way> {
    let stream = stream(bed);
    let mut sink = stream
        .devmem_sink_for_host(bed, QUEUE, BYTES)
        .map_err(error)?;
    let into = sink.wait_event(place)?;
    let (source, from) = stream.source_ready(bed, BYTES).map_err(error)?;
    watch(bed, [&from, &into])?;

    mark(bed, Edge::Start)?;
    source.tell(Command::Go)?;
    let view = bed.guest.dmabuf(into)?;
    let in_accelerator = stream
        .verify_and_release_in(bed, Some(view), &mut sink, |_| ())
        .map_err(error)?;
    mark(bed, Edge::End)?;
    // Both jobs still exist: what they had in memory is there.
    let way = way(bed, 0, &stream, in_accelerator)?;
    if let Some(failure) = sink.join()?.error.or(source.join()?.error) {
        return Err(failure).context("device memory TCP failed");
    }
    Ok(way)
}

/// By ordinary TCP, and a copy.
fn copied_there(bed: &Testbed) -> Result<Way> {
    let stream = stream(bed);
    let mut sink = stream.copy_sink(bed, BYTES)?;
    let into = sink.wait_event(place)?;
    let (source, from) = stream.source_ready(bed, BYTES).map_err(error)?;
    watch(bed, [&from, &into])?;

    mark(bed, Edge::Start)?;
    source.tell(Command::Go)?;
    while sink.next_event(bed.guest.call_timeout())?.is_some() {}
    mark(bed, Edge::End)?;
    let mut copied = vec![0; BYTES as usize];
    bed.guest.dmabuf(into)?.read(0, &mut copied)?;
    let in_accelerator = match copied == stream.payload(BYTES) {
        true => BYTES,
        false => 0,
    };
    let way = way(bed, 1, &stream, in_accelerator)?;
    if let Some(failure) = sink.join()?.error.or(source.join()?.error) {
        return Err(failure).context("the transfer with a copy failed");
    }
    Ok(way)
}

fn way(bed: &Testbed, window: u32, stream: &Stream, in_accelerator: u64) -> Result<Way> {
    let window = bed.guest.window(window)?;
    let accesses = window.ranges.get(ACCELERATOR).copied();
    let accesses = accesses.context("the counter watched nothing")?;
    let traces = stream.traces_in_ram(bed, BYTES).map_err(error)?;
    Ok(Way {
        in_accelerator,
        in_ram: traces::bytes(&traces),
        loaded: accesses.loaded,
        stored: accesses.stored,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(change: impl FnOnce(&mut Compared)) -> bool {
        let way = |in_ram, stored| Way {
            in_accelerator: BYTES,
            in_ram,
            loaded: 0,
            stored,
        };
        let mut compared = Compared {
            bytes: BYTES,
            devmem: way(0, 0),
            copy: way(1 << 20, BYTES),
            logs: Logs {
                directory: "".into(),
                console: "".into(),
                transcript: "".into(),
                pcaps: Vec::new(),
            },
        };
        change(&mut compared);
        compared.holds()
    }

    #[test]
    fn a_byte_of_payload_where_it_must_not_be_is_a_failure() {
        assert!(holds(|_| ()));
        assert!(!holds(|compared| compared.devmem.in_accelerator -= 1));
        assert!(!holds(|compared| compared.devmem.in_ram = 64));
        assert!(!holds(|compared| compared.devmem.loaded = 1));
        assert!(!holds(|compared| compared.devmem.stored = 1));
    }

    #[test]
    fn a_copy_that_nobody_saw_is_a_failure() {
        assert!(!holds(|compared| compared.copy.in_accelerator = 0));
        assert!(!holds(|compared| compared.copy.in_ram = 0));
        assert!(!holds(|compared| compared.copy.stored -= 1));
    }
}
