// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs one row in a guest of its own.

use anyhow::{Context, Result, ensure};
use cases::{Driver, Family, PORTS, Testbed, place};
use protocol::{
    MeasuredSink, MeasuredSource, Memory, Ns, PacedWire,
    kernel::{ListFunctions, Symbol},
    measure::{MeasuredSinkReport, MeasuredSourceReport, PacedWireReport, Path},
    rings::TcpDataSplit,
};
use vm::counter::{Watch, Window};
use vm::{Images, Topology};

use super::scenario::{Transfer, Way};
use crate::failure::of_case as error;

/// The queue of rigb that all TCP takes, in both directions, and that is bound.
pub(crate) const QUEUE: u32 = 1;
/// A sender's dma-buf, and what a receiver has beside what its ring takes: more than any window of
/// TCP, so that memory is not what limits either.
const DMABUF: u64 = 64 << 20;
/// The base page in bytes.
const PAGE: u32 = 4 << 10;
/// Memory of the accelerator: dma-bufs of the sender and of the receiver.
pub(crate) const ACCELERATOR_MIB: u64 = 256;
/// Receive descriptors, the most that the NIC has: more than TCP has packets in flight, so that none
/// is lost in front of a processor that is busy sending.
pub(crate) const RING: u32 = 4096;
/// Sent before the window, so that it finds buffers and windows grown: with less, page pools take
/// memory for what comes to wait in the socket.
const BEFORE: u64 = 128 << 20;
/// Sent after it, so that the sender does not run dry before its end: a receiver that takes all that
/// there is at once begins and ends its window as many bytes late.
const AFTER: u64 = 32 << 20;

/// Labels of what is watched.
pub(crate) const DEVICE_MEMORY: &str = "device memory";
pub(crate) const DOORBELLS: &str = "doorbells";
pub(crate) const REGISTERS: &str = "registers";

/// What was measured.
pub(crate) struct Measurement {
    pub(crate) row: Transfer,
    pub(crate) sink: MeasuredSinkReport,
    /// What the wire says, if it was a paced one.
    pub(crate) wire: Option<PacedWireReport>,
    pub(crate) window: Window,
    /// The modules' functions, which lie elsewhere in every boot.
    pub(crate) modules: Vec<Symbol>,
}

/// Boots a guest and measures a window of `window` bytes.
///
/// # Errors
///
/// When the guest fails, or the stream did not go its way.
pub(crate) fn measure(images: &Images, row: Transfer, window: u64) -> Result<Measurement> {
    let name = format!("bench-{}", row.name().replace([' ', ',', '+'], ""));
    run(images, row, window, &name).with_context(|| row.name())
}

fn run(images: &Images, row: Transfer, window: u64, name: &str) -> Result<Measurement> {
    let scenario = row.scenario;
    let mut options = Testbed::options()
        .driver(scenario.driver)
        .counted()
        .mtu(row.mtu);
    if scenario.driver == Driver::Rigb {
        options = options.transmit_queue(QUEUE);
    }
    if [scenario.tx, scenario.rx].into_iter().any(in_accelerator) {
        options = options
            .accelerator(Topology::Switch)
            .machine(|machine| machine.accelerator_memory_mib(ACCELERATOR_MIB));
    }
    if scenario.wire.is_some() {
        options = options.two_wires();
    }
    let bed = options.boot_images(images, name).map_err(error)?;
    if scenario.driver == Driver::Rigb {
        // One vector does everything, as with the one queue of igb.
        for station in bed.stations() {
            bed.steer(station, &[QUEUE]).map_err(error)?;
        }
    }
    if scenario.rx.places_payload() {
        bed.set_header_split(bed.local, TcpDataSplit::On)
            .map_err(error)?;
    }
    for station in bed.stations() {
        bed.set_receive_ring(station, RING).map_err(error)?;
    }
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let at = stream.to.socket(stream.family, stream.port);
    let modules = bed.guest.call(ListFunctions::default())?;
    let wire = match scenario.wire {
        Some(rate) => Some(bed.guest.start(PacedWire {
            ns: Ns::Local,
            interfaces: PORTS.map(str::to_owned),
            rate,
        })?),
        None => None,
    };
    // On a paced wire it is goodput that counts.
    let mut watches = match wire {
        Some(_) => Vec::new(),
        None => registers(&bed)?,
    };

    let mut sink = bed.guest.start(MeasuredSink {
        ns: stream.to.ns,
        from: stream.from.ns,
        interface: stream.to.name(),
        listen: at,
        path: path(scenario.rx, true),
        flows: scenario.flows,
        token_batch: scenario.token_batch,
        read: row.io,
        skip: BEFORE,
        window,
    })?;
    if scenario.rx != Way::Ordinary {
        let into = sink.wait_event(place)?;
        watches.extend(Watch::dmabuf(DEVICE_MEMORY, &into));
    }
    // The sender's dma-buf cannot be watched before it sends; what is in it was put there before.
    bed.guest.watch(&watches)?;
    let source = bed.guest.start(MeasuredSource {
        ns: stream.from.ns,
        interface: stream.from.name(),
        connect: at,
        path: path(scenario.tx, false),
        flows: scenario.flows,
        write: row.io,
        bytes: BEFORE + window + AFTER,
        at_round_time: true,
    })?;
    let (sink, source) = (sink.join()?, source.join()?);
    went_its_way(&sink, &source)?;
    ensure!(
        scenario.driver == Driver::Rigb || !scenario.rx.places_payload(),
        "only rigb has device memory"
    );
    let wire = wire.map(|wire| wire.finish()).transpose()?;
    let counted = bed.guest.window(0)?;
    bed.finish().map_err(error)?;
    Ok(Measurement {
        row,
        sink,
        wire,
        window: counted,
        modules,
    })
}

fn in_accelerator(way: Way) -> bool {
    matches!(way.memory(), Some(Memory::Accelerator { .. }))
}

/// The path at one end; a receiver needs memory for its ring, too.
pub(crate) fn path(way: Way, receives: bool) -> Path {
    let ring = |buffer: u32| match receives {
        true => u64::from(RING) * u64::from(buffer),
        false => 0,
    };
    match way {
        Way::Ordinary => Path::Ordinary,
        Way::Copied(memory) => Path::Copied {
            memory,
            dmabuf_bytes: DMABUF,
        },
        Way::Devmem(memory, rx_page_size) => Path::Devmem {
            memory,
            dmabuf_bytes: DMABUF + ring(rx_page_size),
            queues: vec![QUEUE],
            rx_page_size: Some(rx_page_size),
        },
        Way::Zcrx(memory, rx_buf_len) => Path::Zcrx {
            memory,
            area_bytes: DMABUF + ring(rx_buf_len),
            queue: QUEUE,
            // A base page is what there is without asking.
            rx_buf_len: (rx_buf_len > PAGE).then_some(rx_buf_len),
        },
    }
}

/// The registers of both NICs, as QEMU says where they are.
fn registers(bed: &Testbed) -> Result<Vec<Watch>> {
    let mut found = Vec::new();
    collect(
        &bed.guest.monitor("query-pci", serde_json::json!({}))?,
        &mut found,
    );
    ensure!(found.len() == 2, "QEMU names {} NICs, not 2", found.len());
    Ok(found.into_iter().flat_map(watches_of).collect())
}

/// Addresses of BAR 0 of each 82576 (8086:10c9) in what `query-pci` says, bridges included.
fn collect(value: &serde_json::Value, found: &mut Vec<u64>) {
    match value {
        serde_json::Value::Array(all) => all.iter().for_each(|value| collect(value, found)),
        serde_json::Value::Object(object) => {
            if value["id"]["vendor"] == 0x8086 && value["id"]["device"] == 0x10c9 {
                let regions = value["regions"].as_array().into_iter().flatten();
                let bar = regions.filter(|region| region["bar"] == 0);
                found.extend(bar.filter_map(|region| region["address"].as_u64()));
            } else {
                object.values().for_each(|value| collect(value, found));
            }
        }
        _ => {}
    }
}

/// Bytes of BAR 0.
const BAR: u64 = 0x2_0000;
/// Receive and transmit tail of queue 0 (RDT, TDT: datasheet 8.10.8 and 8.12.12), the distance to
/// the next queue's, and how many there are; the aliases of the first queues come first.
const TAILS: [(u64, u64, u64); 4] = [
    (0x2818, 0x100, 4),
    (0x3818, 0x100, 4),
    (0xc018, 0x40, 16),
    (0xe018, 0x40, 16),
];

fn watches_of(bar: u64) -> Vec<Watch> {
    let mut watches = Vec::new();
    let mut add = |label: &str, start: u64, end: u64| {
        if start < end {
            watches.push(Watch {
                label: label.to_owned(),
                start: bar + start,
                len: end - start,
            });
        }
    };
    let mut at = 0;
    for (first, stride, queues) in TAILS {
        for queue in 0..queues {
            let tail = first + queue * stride;
            add(REGISTERS, at, tail);
            add(DOORBELLS, tail, tail + 4);
            at = tail + 4;
        }
    }
    add(REGISTERS, at, BAR);
    watches
}

/// What a figure must not hide.
pub(crate) fn went_its_way(sink: &MeasuredSinkReport, source: &MeasuredSourceReport) -> Result<()> {
    if let Some(failure) = sink.error.clone() {
        return Err(failure).context("the receiver failed");
    }
    if let Some(failure) = source.error.clone() {
        return Err(failure).context("the sender failed");
    }
    ensure!(
        sink.end_of_stream && source.delivered && sink.bytes == source.bytes,
        "not everything arrived: {sink:?}, {source:?}"
    );
    ensure!(sink.window_bytes > 0, "the window never ended: {sink:?}");
    ensure!(
        sink.linear_bytes == 0 && source.copied == 0,
        "payload did not stay in device memory: {sink:?}, {source:?}"
    );
    Ok(())
}
