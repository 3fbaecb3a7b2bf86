// SPDX-License-Identifier: MIT OR Apache-2.0

//! Registers of the NIC that are accessed while payload moves. Our model counts them.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use cases::{Family, Result, Station, Testbed};
use model::nic::Accesses;
use protocol::{Event, JobSpec, Release};
use vm::{JobHandle, Link};

const MIB: u64 = 1 << 20;
/// Bytes before registers are counted: a connection has been made by then, and a queue restarted.
const BEFORE: u64 = 2 * MIB;
/// Packets that come and go while they are counted: 8 MiB at MTU 9000.
const COUNTED: u64 = 8 * MIB / 9000;

/// How often the driver looks at its clock, at the link and, where nothing comes, at a queue: whatever moves elsewhere.
const PERIOD: Duration = Duration::from_secs(2);
/// Registers that it reads then: the device's status (datasheet 8.2.2), those of the clock (8.15), and the heads of
/// receive queues (RDH, 8.10.7).
const STATUS: u32 = 0x8;
const CLOCK: Range<u32> = 0xb600..0xb700;
const HEAD: u32 = 0xc010;
const STRIDE: u32 = 0x40;
const QUEUES: u32 = 16;

/// Waits until a receiver has so many bytes.
fn wait_for<J: JobSpec>(sink: &mut JobHandle<'_, J>, bytes: u64) -> Result<u64> {
    Ok(sink.wait_event(|event| match event {
        Event::Progress { bytes: now } if now >= bytes => Some(now),
        _ => None,
    })?)
}

/// What is accessed in some time, and how many packets come and go.
struct Counted {
    accesses: Accesses,
    time: Duration,
    packets: u64,
}

/// Counts while at least [`COUNTED`] packets come and go. What a receiver says of its bytes may be older than what is read
/// of the NIC, so it only paces this. The interface's statistics read no register.
fn accesses_while<J: JobSpec>(
    bed: &Testbed,
    sink: &mut JobHandle<'_, J>,
    station: Station,
) -> Result<Counted> {
    let packets = || -> Result<u64> {
        let stats = bed.link_stats(station)?;
        Ok(stats.rx_packets + stats.tx_packets)
    };
    let mut received = wait_for(sink, BEFORE)?;
    let start = Instant::now();
    bed.accesses(station)?;
    let before = packets()?;
    loop {
        received = wait_for(sink, received + MIB)?;
        let packets = packets()? - before;
        if packets >= COUNTED {
            let accesses = bed.accesses(station)?;
            let time = start.elapsed();
            return Ok(Counted {
                accesses,
                time,
                packets,
            });
        }
    }
}

/// Asserts that none is read but for what is done from time to time, and that not even a register per
/// packet is written.
fn assert_few(counted: Counted) {
    let Counted {
        accesses,
        time,
        packets,
    } = counted;
    let periods = (time.as_secs() / PERIOD.as_secs()) + 2;
    let heads: Vec<_> = (0..QUEUES).map(|queue| HEAD + queue * STRIDE).collect();
    let mut reads = accesses.reads.clone();
    reads.retain(|register, count| {
        let periodic = *register == STATUS || CLOCK.contains(register) || heads.contains(register);
        !periodic || *count > periods
    });
    assert_eq!(reads, [].into(), "in {time:?}: {accesses:?}");
    let writes: u64 = accesses.writes.values().sum();
    println!("{writes} writes, {packets} packets");
    assert!(writes > 0 && writes < packets, "{packets}: {accesses:?}");
}

#[test]
fn payload_comes_and_goes_without_a_read_of_a_register() -> Result {
    // A link that does nothing: only wires of ours have any.
    let options = Testbed::devmem_options().link(Link::default());
    let bed = options.boot_steered("registers")?;

    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[256 << 10], 0)?;
    assert_few(accesses_while(&bed, &mut sink, bed.local)?);
    source.finish()?;
    sink.join()?;

    let stream = bed.stream(bed.local, bed.peer, Family::V4);
    let mut sink = stream.sink(&bed)?;
    let source = stream.devmem_source(&bed, None, 8 * MIB, 256 << 10)?;
    assert_few(accesses_while(&bed, &mut sink, bed.local)?);
    source.finish()?;
    sink.join()?;
    bed.finish()
}

/// QEMU by itself waits for five seconds, gives the guest ones then, and is out of step with the device for good.
#[test]
fn a_device_that_had_to_wait_for_a_processor_answers_with_what_is_in_its_registers() -> Result {
    let bed = Testbed::options().boot("stalled")?;
    // What is sent meanwhile stays in its ring for longer than the core allows.
    bed.guest.allow_log(&["NETDEV WATCHDOG"]);
    // In this time the driver looks at the clock several times.
    bed.guest.stall_devices(5 * PERIOD);
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let sink = stream.sink(&bed)?;
    stream.source(&bed, Some(MIB), &[64 << 10], 0)?.join()?;
    let received = sink.join()?;
    assert_eq!((received.bytes, received.mismatch), (MIB, None));
    bed.finish()
}
