// SPDX-License-Identifier: MIT OR Apache-2.0

//! From counters to figures. `Documentation/performance.md` explains each.

use std::collections::BTreeSet;

use cases::Driver;
use protocol::{Memory, PacedWire};
use serde::{Deserialize, Serialize};
use vm::counter::{Accesses, Counts};

use super::measure::{DEVICE_MEMORY, DOORBELLS, Measurement, REGISTERS};
use super::parts::{PARTS, Parts};
use super::profile::{self, Function};
use super::restart;
use super::scenario::{RESTART, Way};

/// One figure of one row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// Name of the scenario.
    pub(crate) row: String,
    /// The module's name.
    pub(crate) driver: String,
    /// How the sender sends: `ordinary`, `copied` or `devmem`.
    pub(crate) tx: String,
    /// How the receiver receives: as the sender, or `zcrx`.
    pub(crate) rx: String,
    /// The device memory: `udmabuf`, `system heap` or `accelerator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<String>,
    /// Bytes of each of the receiver's buffers of device memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) net_iov: Option<u32>,
    /// Connections.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) flows: u32,
    /// Tokens that are returned together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_batch: Option<u32>,
    /// MTU of the wire.
    pub(crate) mtu: u32,
    /// Bytes of each read and write.
    pub(crate) io: u32,
    /// What was measured.
    pub(crate) figure: String,
    /// The part of the work, for figures by part: those in [`BY_PART`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<String>,
    /// Its unit.
    pub(crate) unit: String,
    /// How much it is: the median of the repeats.
    pub(crate) value: f64,
    /// The smallest of the repeats.
    pub(crate) low: f64,
    /// The largest.
    pub(crate) high: f64,
}

fn one() -> u32 {
    1
}

fn is_one(flows: &u32) -> bool {
    *flows == 1
}

/// Names of the figures that tables and comparisons need.
pub(crate) const INSTRUCTIONS: &str = "instructions";
pub(crate) const REPS: &str = "rep iterations";
pub(crate) const LOADED: &str = "bytes loaded";
pub(crate) const STORED: &str = "bytes stored";
pub(crate) const PER_PACKET: &str = "instructions per packet";
const REPS_PER_PACKET: &str = "rep iterations per packet";
pub(crate) const PACKETS: &str = "packets";
pub(crate) const DEVICE_LOADED: &str = "device memory loaded";
pub(crate) const DEVICE_STORED: &str = "device memory stored";
pub(crate) const DOORBELL_WRITES: &str = "doorbells";
pub(crate) const INTERRUPTS: &str = "interrupts";

pub(crate) const PAGE_ALLOCATIONS: &str = "page allocations";
pub(crate) const NET_IOV_ALLOCATIONS: &str = "net_iov allocations";
pub(crate) const RETRANSMITS: &str = "retransmitted segments";
pub(crate) const READS: &str = "reads";
pub(crate) const FRAGMENTS: &str = "fragments";

/// Figures that are also broken down by part: [`super::parts`].
pub(crate) const BY_PART: &[&str] = &[INSTRUCTIONS, REPS, LOADED, STORED];

/// Figures of a paced wire.
pub(crate) const GOODPUT: &str = "goodput";
pub(crate) const GOODPUT_CEILING: &str = "goodput ceiling";
pub(crate) const GOODPUT_SHARE: &str = "goodput share";

/// Figures of restarts.
pub(crate) const RESTART_INSTRUCTIONS: &str = "restart instructions";
pub(crate) const RESTART_LOST: &str = "packets lost in 1000 restarts";
pub(crate) const RESTART_PACKETS: &str = "packets received in 1000 restarts";

/// Functions whose calls are figures: a kernel without them would be taken for one that calls none.
pub(crate) const COUNTED: &[&str] = &[INTERRUPT, PAGES_SLOW, DEVMEM_PROVIDER, ZCRX_PROVIDER_SLOW];
const INTERRUPT: &str = "common_interrupt";
/// What a page pool calls when it has no page to recycle: it allocates up to 64
/// (net/core/page_pool.c). The kernel counts that as `alloc_slow`.
const PAGES_SLOW: &str = "__page_pool_alloc_netmems_slow";
/// The same with device memory: it takes one net_iov from the dma-buf (net/core/devmem.c).
const DEVMEM_PROVIDER: &str = "mp_dmabuf_devmem_alloc_netmems";
/// The same with an area of zcrx, for each net_iov that did not come from the refill ring
/// (io_uring/zcrx.c).
const ZCRX_PROVIDER_SLOW: &str = "net_mp_niov_set_page_pool";

const PER_BYTE: &str = "1/B";
const PER_MIB: &str = "1/MiB";

/// All figures of a measurement.
pub(crate) fn figures(
    measured: &Measurement,
    functions: &[Function],
    parts: &Parts,
) -> Vec<Figure> {
    let (row, sink) = (measured.row, &measured.sink);
    let bytes = sink.window_bytes as f64;
    let mib = bytes / f64::from(1 << 20);
    let total = measured.window.total();
    // The sender's, where the receiver has none.
    let memory = row.scenario.rx.memory().or(row.scenario.tx.memory());
    let memory = memory.map(|memory| match memory {
        Memory::Udmabuf => "udmabuf",
        Memory::SystemHeap => "system heap",
        Memory::Accelerator { .. } => "accelerator",
    });
    let net_iov = match row.scenario.rx {
        Way::Devmem(_, bytes) | Way::Zcrx(_, bytes) => Some(bytes),
        _ => None,
    };
    let mut figures = Vec::new();
    let mut add = |figure: &str, part: Option<&str>, unit: &str, value: f64| {
        figures.push(Figure {
            row: row.scenario.name.to_owned(),
            driver: row.scenario.driver.name().to_owned(),
            tx: way(row.scenario.tx).to_owned(),
            rx: way(row.scenario.rx).to_owned(),
            memory: memory.map(str::to_owned),
            net_iov,
            flows: row.scenario.flows,
            token_batch: row.scenario.token_batch,
            mtu: row.mtu,
            io: row.io,
            figure: figure.to_owned(),
            part: part.map(str::to_owned),
            unit: unit.to_owned(),
            value,
            low: value,
            high: value,
        });
    };
    if let (Some(rate), Some(wire)) = (row.scenario.wire, &measured.wire) {
        let goodput = bytes * 8e9 / sink.window_ns.max(1) as f64;
        let ceiling = rate as f64 * ceiling(row.mtu);
        add(GOODPUT, None, "bit/s", goodput);
        add(GOODPUT_CEILING, None, "bit/s", ceiling);
        add(GOODPUT_SHARE, None, "1", goodput / ceiling);
        let dropped = wire.dropped.iter().sum::<u64>();
        add("frames dropped by the wire", None, "1", dropped as f64);
        add(RETRANSMITS, None, "1", sink.window_retransmits as f64);
        return figures;
    }
    let per_byte = |value: u64| value as f64 / bytes;
    let per_mib = |value: u64| value as f64 / mib;
    for &figure in BY_PART {
        add(figure, None, PER_BYTE, per_byte(count(&total, figure)));
    }
    let packets = sink.window_packets.max(1) as f64;
    let per_packet = |value: u64| value as f64 / packets;
    add(PER_PACKET, None, "1", per_packet(total.instructions));
    add(REPS_PER_PACKET, None, "1", per_packet(total.reps));
    add(PACKETS, None, PER_MIB, packets / mib);
    add(READS, None, PER_MIB, per_mib(sink.window_reads));
    add(FRAGMENTS, None, PER_MIB, per_mib(sink.window_fragments));
    let range = |label: &str| -> Accesses {
        let ranges = &measured.window.ranges;
        ranges.get(label).copied().unwrap_or_default()
    };
    let device = range(DEVICE_MEMORY);
    add(DEVICE_LOADED, None, PER_BYTE, per_byte(device.loaded));
    add(DEVICE_STORED, None, PER_BYTE, per_byte(device.stored));
    let (registers, doorbells) = (range(REGISTERS), range(DOORBELLS));
    add("register reads", None, PER_MIB, per_mib(registers.loads));
    add("register writes", None, PER_MIB, per_mib(registers.stores));
    add(DOORBELL_WRITES, None, PER_MIB, per_mib(doorbells.stores));
    let calls = |name: &str| -> u64 {
        let named = functions.iter().filter(|function| function.name == name);
        named.map(|function| function.calls).sum()
    };
    add(INTERRUPTS, None, PER_MIB, per_mib(calls(INTERRUPT)));
    // igb has no page pool.
    if row.scenario.driver == Driver::Rigb {
        add(PAGE_ALLOCATIONS, None, PER_MIB, per_mib(calls(PAGES_SLOW)));
        let net_iovs = calls(DEVMEM_PROVIDER) + calls(ZCRX_PROVIDER_SLOW);
        add(NET_IOV_ALLOCATIONS, None, PER_MIB, per_mib(net_iovs));
    }
    add(RETRANSMITS, None, "1", sink.window_retransmits as f64);
    for &part in PARTS {
        let of_part = functions.iter().filter(|f| parts.of(f) == part);
        let counts = profile::sum(of_part);
        for &figure in BY_PART {
            let value = per_byte(count(&counts, figure));
            add(figure, Some(part), PER_BYTE, value);
        }
    }
    figures
}

/// The count that is called so in [`BY_PART`].
fn count(counts: &Counts, figure: &str) -> u64 {
    match figure {
        INSTRUCTIONS => counts.instructions,
        REPS => counts.reps,
        LOADED => counts.accesses.loaded,
        STORED => counts.accesses.stored,
        _ => unreachable!("{figure} is not told by part"),
    }
}

/// Most of a wire's bits that can be payload: in each packet all but the headers of IPv4 and of TCP,
/// which has timestamps, and what Ethernet adds.
pub(crate) fn ceiling(mtu: u32) -> f64 {
    const HEADERS: u32 = 20 + 20 + 12;
    let frame = u64::from(mtu) + PacedWire::HEADER + PacedWire::PER_FRAME;
    f64::from(mtu - HEADERS) / frame as f64
}

/// The figures of restarts.
pub(crate) fn of_restarts(measured: &restart::Measurement) -> Vec<Figure> {
    let figure = |figure: &str, values: &[u64]| {
        let at = |index: usize| values.get(index).map_or(0.0, |value| *value as f64);
        Figure {
            row: RESTART.to_owned(),
            driver: Driver::Rigb.name().to_owned(),
            tx: way(Way::Ordinary).to_owned(),
            rx: way(Way::Ordinary).to_owned(),
            memory: Some("udmabuf".to_owned()),
            flows: 1,
            mtu: restart::MTU,
            io: restart::WRITE,
            figure: figure.to_owned(),
            unit: "1".to_owned(),
            value: at(values.len() / 2),
            low: at(0),
            high: at(values.len().saturating_sub(1)),
            ..Figure::default()
        }
    };
    vec![
        figure(RESTART_INSTRUCTIONS, &measured.instructions),
        figure(RESTART_LOST, &[measured.lost]),
        figure(RESTART_PACKETS, &[measured.packets]),
    ]
}

/// The median of each figure over repeats of the same row, the smallest and the largest.
pub(crate) fn medians(mut repeats: Vec<Vec<Figure>>) -> Vec<Figure> {
    if repeats.len() == 1 {
        // What is measured once may have extremes of its own.
        let mut figures = repeats.remove(0);
        for figure in &mut figures {
            for value in [&mut figure.value, &mut figure.low, &mut figure.high] {
                *value = rounded(*value);
            }
        }
        return figures;
    }
    let mut values: Vec<Vec<f64>> = Vec::new();
    let mut figures = Vec::new();
    for (index, repeat) in repeats.into_iter().enumerate() {
        if index == 0 {
            values = repeat.iter().map(|figure| vec![figure.value]).collect();
            figures = repeat;
        } else {
            for (values, figure) in values.iter_mut().zip(repeat) {
                values.push(figure.value);
            }
        }
    }
    for (figure, mut values) in figures.iter_mut().zip(values) {
        values.sort_by(f64::total_cmp);
        figure.value = rounded(values[values.len() / 2]);
        figure.low = rounded(values[0]);
        figure.high = rounded(values[values.len() - 1]);
    }
    figures
}

fn way(way: Way) -> &'static str {
    match way {
        Way::Ordinary => "ordinary",
        Way::Copied(_) => "copied",
        Way::Devmem(..) => "devmem",
        Way::Zcrx(..) => "zcrx",
    }
}

/// To five digits: more would change with every run.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// The value of a figure that is not by part.
pub(crate) fn find(figures: &[Figure], row: &str, mtu: u32, io: u32, figure: &str) -> Option<f64> {
    let same = |f: &&Figure| {
        f.part.is_none() && f.row == row && f.mtu == mtu && f.io == io && f.figure == figure
    };
    figures.iter().find(same).map(|f| f.value)
}

/// The values of a figure by part, in the order of [`PARTS`]; empty if it was not measured.
pub(crate) fn by_part(figures: &[Figure], row: &str, mtu: u32, io: u32, figure: &str) -> Vec<f64> {
    let of_row = |f: &&Figure| f.row == row && f.mtu == mtu && f.io == io && f.figure == figure;
    let of_row: Vec<_> = figures.iter().filter(of_row).collect();
    let value = |part: &&str| {
        let found = of_row.iter().find(|f| f.part.as_deref() == Some(part));
        found.map(|f| f.value)
    };
    let values: Option<Vec<f64>> = PARTS.iter().map(value).collect();
    values.unwrap_or_default()
}

/// MTUs and sizes of the transfers that were measured, in order.
pub(crate) fn sizes(figures: &[Figure]) -> Vec<(u32, u32)> {
    let transfers = figures.iter().filter(|f| f.row != RESTART);
    let sizes: BTreeSet<_> = transfers.map(|f| (f.mtu, f.io)).collect();
    sizes.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_repeats_the_median_counts_and_the_extremes_are_told() {
        let figure = |value| Figure {
            value,
            low: value,
            high: value,
            ..Figure::default()
        };
        let repeats = [1.0, 0.98, 1.01].map(|value| vec![figure(value)]);
        let found = medians(repeats.to_vec());
        let found = &found[0];
        assert_eq!((found.value, found.low, found.high), (1.0, 0.98, 1.01));
        assert!(medians(Vec::new()).is_empty());
    }

    #[test]
    fn a_wire_carries_less_payload_than_bits() {
        assert_eq!(rounded(ceiling(9000)), 0.990_04);
        assert_eq!(rounded(ceiling(1500)), 0.941_48);
    }

    #[test]
    fn figures_have_five_digits() {
        assert_eq!(rounded(0.730_123_4), 0.730_12);
        assert_eq!(rounded(6397.712), 6397.7);
        assert_eq!(rounded(0.0), 0.0);
    }
}
