// SPDX-License-Identifier: MIT OR Apache-2.0

//! The demonstration: 64 MiB into an accelerator's memory and 64 MiB out of it,
//! over the NIC, each byte verified; and what it takes to do the same by copying.
//! Where the kernel has no peer-to-peer DMA, dma-bufs of the guest's RAM do.

mod compare;
mod picture;
mod progress;
mod report;
mod stage;
mod text;

use std::hash::{BuildHasher, Hasher};

use anyhow::{Context, Result, ensure};
use cases::{ACCELERATOR, Family, Station, Stream, Testbed};
use protocol::{Memory, netdev::QueueKind};
use vm::{Images, Topology};

use crate::failure::of_case as error;
use crate::model::Model;
use crate::ui;

use progress::Transfer;
use report::Direction;
pub(crate) use report::Report;
use stage::{Logs, MTU, QUEUE, Stage, Timer};

/// Bytes in each direction.
const BYTES: u64 = 64 << 20;
/// The dma-buf that is received into. Tokens go back when the host has looked
/// at what they name, so it may be smaller than the stream.
const RX_DMABUF: u64 = 32 << 20;
/// The dma-buf that is sent from.
const TX_DMABUF: u64 = 16 << 20;
/// Bytes of each send.
const TX_CHUNK: u32 = 256 << 10;
/// The accelerator's driver, a module that is built where the kernel has peer-to-peer DMA.
const ACCELERATOR_DRIVER: &str = "ivshmem_mem";

/// Boots `images` and runs it.
///
/// # Errors
///
/// When the guest fails, or a byte is wrong.
pub(crate) fn run(images: Images, model: Model) -> Result<Report> {
    let qemu_version = images.qemu.version.clone();
    let kernel_release = images.kernel_release.clone();
    let seed = std::hash::RandomState::new().build_hasher().finish();
    let mut stages = Vec::new();

    let driver = model.driver();
    let mut options = Testbed::options().driver(driver).mtu(MTU);
    let memory = if images.has_module(ACCELERATOR_DRIVER) {
        options = options.accelerator(Topology::Switch);
        ACCELERATOR
    } else {
        ui::note("no accelerator: the kernel lacks CONFIG_PCI_P2PDMA");
        Memory::Udmabuf
    };
    let stage = Timer::begin("boot", "two NICs on one wire, driver loaded");
    let bed = options.boot_images(&images, "run").map_err(error)?;
    let hypervisor = bed.guest.hypervisor();
    stages.push(stage.done(&format!(
        "Linux {kernel_release} in QEMU {qemu_version} ({hypervisor}){}",
        match model {
            Model::Qemu => "",
            Model::Nobounce => ", our model of the NIC",
        }
    )));

    let stage = Timer::begin("set up", "header split, RSS");
    let local = bed.local;
    bed.set_header_split(local, protocol::rings::TcpDataSplit::On)
        .map_err(error)?;
    bed.steer(local, &[QUEUE]).map_err(error)?;
    stages.push(stage.done(&format!(
        "{}: header split on, all TCP steered to queue {QUEUE}",
        local.interface
    )));

    let (rx, stage) = receive(&bed, memory, seed)?;
    stages.push(stage);
    let (tx, stage) = send(&bed, memory, seed.wrapping_add(1))?;
    stages.push(stage);

    let net_iovs_outstanding = bed.net_iovs_left(local).map_err(error)?;
    let stage = Timer::begin("power off", "reading the kernel's log");
    let verdict = bed.verdict().map_err(error)?;
    stages.push(stage.done("the kernel's log is clean"));

    let compared = if memory == ACCELERATOR {
        Some(compare::run(images, driver, &mut stages)?)
    } else {
        None
    };

    let report = Report {
        driver: "rigb",
        device: driver.nic().device,
        kernel_release,
        qemu_version,
        accelerator: hypervisor,
        seed,
        mtu: MTU,
        memory: name(memory),
        rx,
        tx,
        net_iovs_outstanding,
        compared,
        stages,
        logs: Logs::of(verdict),
    };
    ensure!(
        report.holds(),
        "the transfers ended, but not as they must: {report:#?}"
    );
    Ok(report)
}

/// What the report calls the memory.
fn name(memory: Memory) -> &'static str {
    match memory {
        Memory::Accelerator { .. } => "accelerator",
        Memory::SystemHeap => "dma-heap",
        Memory::Udmabuf => "udmabuf",
    }
}

/// From the peer into a dma-buf that is bound to the queue.
fn receive(bed: &Testbed, memory: Memory, seed: u64) -> Result<(Direction, Stage)> {
    let local = bed.local;
    let before = Counts::read(bed, local, QueueKind::Rx)?;
    let stream = Stream {
        seed,
        memory,
        ..bed.stream(bed.peer, local, Family::V4)
    };

    let transfer = Transfer::begin(
        "receive",
        BYTES,
        "into device memory, verified from outside",
    );
    let received = stream
        .receive_devmem(bed, QUEUE, BYTES, RX_DMABUF, |bytes| transfer.at(bytes))
        .map_err(error)?;
    let after = Counts::read(bed, local, QueueKind::Rx)?;
    let sink = received.sink;
    let stage = transfer.done(&format!(
        "in {} fragments, each found right in the {}",
        sink.fragments,
        name(memory)
    ));
    if let Some(failure) = sink.error {
        return Err(failure).context("the receiver failed");
    }

    Ok((
        Direction {
            bytes: sink.bytes,
            verified: received.verified == BYTES,
            verified_by: "the host, in the memory behind the dma-buf",
            linear_bytes: sink.linear_bytes,
            fragments: Some(sink.fragments),
            copied: None,
            drops: after.drops - before.drops,
            queue: QUEUE,
            bytes_by_queue: after.bytes_since(&before),
            checksums_good: after.checksums_good - before.checksums_good,
            checksums_bad: after.checksums_bad - before.checksums_bad,
            elapsed_seconds: stage.seconds,
        },
        stage,
    ))
}

/// From a dma-buf to the peer.
fn send(bed: &Testbed, memory: Memory, seed: u64) -> Result<(Direction, Stage)> {
    let local = bed.local;
    let before = Counts::read(bed, local, QueueKind::Tx)?;
    let peer_before = Counts::read(bed, bed.peer, QueueKind::Rx)?;
    let stream = Stream {
        seed,
        memory,
        ..bed.stream(local, bed.peer, Family::V4)
    };

    let transfer = Transfer::begin("send", BYTES, "out of device memory, verified at the peer");
    let sent = stream
        .send_devmem(bed, BYTES, TX_DMABUF, TX_CHUNK, |bytes| transfer.at(bytes))
        .map_err(error)?;
    let after = Counts::read(bed, local, QueueKind::Tx)?;
    let peer_after = Counts::read(bed, bed.peer, QueueKind::Rx)?;
    let stage = transfer.done(&format!(
        "in {} sends, {} copied by the kernel",
        sent.source.sends, sent.source.copied
    ));
    if let Some(failure) = sent.source.error {
        return Err(failure).context("the sender failed");
    }

    let bytes_by_queue = after.bytes_since(&before);
    let busiest = (0u32..)
        .zip(&bytes_by_queue)
        .max_by_key(|(_, bytes)| **bytes);
    Ok((
        Direction {
            bytes: sent.sink.bytes,
            verified: sent.sink.bytes == BYTES && sent.sink.mismatch.is_none(),
            verified_by: "the peer, as they arrive",
            linear_bytes: 0,
            fragments: None,
            copied: Some(sent.source.copied),
            drops: after.drops - before.drops,
            queue: busiest.map_or(0, |(queue, _)| queue),
            bytes_by_queue,
            checksums_good: peer_after.checksums_good - peer_before.checksums_good,
            checksums_bad: peer_after.checksums_bad - peer_before.checksums_bad,
            elapsed_seconds: stage.seconds,
        },
        stage,
    ))
}

/// What the NIC has counted so far.
struct Counts {
    bytes: Vec<u64>,
    drops: u64,
    checksums_good: u64,
    checksums_bad: u64,
}

impl Counts {
    fn read(bed: &Testbed, station: Station, kind: QueueKind) -> Result<Self> {
        let sum = |name| -> Result<u64> {
            let queues = bed.queue_stats(station, kind, name).map_err(error)?;
            Ok(queues.iter().sum())
        };
        let link = bed.link_stats(station).map_err(error)?;
        let (bytes, drops) = match kind {
            QueueKind::Rx => ("rx-bytes", link.rx_dropped + link.rx_missed_errors),
            QueueKind::Tx => ("tx-bytes", link.tx_dropped + link.tx_errors),
        };
        Ok(Self {
            bytes: bed.queue_stats(station, kind, bytes).map_err(error)?,
            drops,
            checksums_good: sum("rx-csum-unnecessary")?,
            checksums_bad: sum("rx-csum-bad")?,
        })
    }

    fn bytes_since(&self, before: &Self) -> Vec<u64> {
        let pairs = self.bytes.iter().zip(&before.bytes);
        pairs.map(|(after, before)| after - before).collect()
    }
}
