// SPDX-License-Identifier: MIT OR Apache-2.0

//! An accelerator's engine tells the NIC that what it has computed can be sent.

use cases::{ACCELERATOR, Driver, Family, Result, Testbed};
use i82576::regs::tdt;
use protocol::{Command, DevmemSignalled, Event, TcpSink};
use vm::JobHandle;

/// The TX queue that all frames are sent on, as there is one processor.
const QUEUE: u16 = 1;
const MESSAGES: u32 = 16;
/// How often to try.
const ATTEMPTS: u32 = 8;
/// Two segments, so that a message is one frame for the driver.
const BYTES: u32 = 16 << 10;
/// The end of the wire that the NIC under test is at.
const NIC: &str = "nic0-1";

fn boot(name: &str) -> Result<Testbed> {
    let options = Testbed::engine_options().driver(Driver::RigbModel);
    let bed = options
        .cpus(1)
        .transmit_queue(QUEUE.into())
        .boot_steered(name)?;
    bed.load_engine()?;
    Ok(bed)
}

/// A sender of messages that the engine computes, and their receiver.
struct Flow<'b> {
    bed: &'b Testbed,
    sink: JobHandle<'b, TcpSink>,
    source: JobHandle<'b, DevmemSignalled>,
    bytes: u64,
}

impl<'b> Flow<'b> {
    /// Begins to send. If the engine does not signal in time, it does too late.
    fn start(bed: &'b Testbed, signal: bool, messages: u32) -> Result<Self> {
        let stream = bed.stream(bed.local, bed.peer, Family::V4);
        let sink = stream.sink(bed)?;
        let source = bed.guest.start(DevmemSignalled {
            ns: stream.from.ns,
            interface: stream.from.name(),
            nic: bed.pci_address(NIC)?,
            queue: QUEUE.into(),
            memory: ACCELERATOR,
            engine: 0,
            connect: stream.to.socket(stream.family, stream.port),
            seed: stream.seed,
            messages,
            message_bytes: BYTES,
            signal,
        })?;
        bed.accesses(bed.local)?;
        source.tell(Command::Go)?;
        Ok(Self {
            bed,
            sink,
            source,
            bytes: u64::from(messages) * u64::from(BYTES),
        })
    }

    /// Waits until all has arrived as it is to. Returns how often the tail was written until then, by the
    /// processor and by the engine.
    fn finish(mut self) -> Result<(u64, u64)> {
        let all = self.bytes;
        self.source.wait_event(|event| match event {
            Event::Progress { bytes } if bytes == all => Some(()),
            _ => None,
        })?;
        let accesses = self.bed.accesses(self.bed.local)?;
        self.source.tell(Command::Finish)?;
        let (sink, source) = (self.sink.join()?, self.source.join()?);
        assert_eq!((sink.bytes, sink.mismatch), (all, None), "{sink:?}");
        assert!(source.delivered && source.copied == 0, "{source:?}");

        let tail = tdt(QUEUE).0;
        let all = accesses.writes.get(&tail).copied().unwrap_or(0);
        let by_engine = accesses.writes_by_peers.get(&tail).copied().unwrap_or(0);
        Ok((all - by_engine, by_engine))
    }
}

/// Sends until the engine alone has rung, once for each message: where the machine is busy, a queue may be kept
/// for too long, or a neighbour be asked for its address meanwhile.
fn send_by_engine_alone(bed: &Testbed, messages: u32) -> Result {
    let mut counts = (0, 0);
    for _ in 0..ATTEMPTS {
        counts = Flow::start(bed, true, messages)?.finish()?;
        if counts == (0, messages.into()) {
            return Ok(());
        }
    }
    panic!("the processor and the engine have rung {counts:?} times for {messages} messages");
}

#[test]
fn what_an_engine_has_computed_leaves_without_the_processors_doorbell() -> Result {
    let bed = boot("signals")?;
    send_by_engine_alone(&bed, MESSAGES)?;
    bed.finish()
}

#[test]
fn frames_that_no_engine_rings_for_leave_all_the_same_and_then_none_can() -> Result {
    let bed = boot("signals-late")?;
    let (by_processor, by_engine) = Flow::start(&bed, false, 2)?.finish()?;
    assert!(by_processor >= 2, "{by_processor}");
    assert_eq!(by_engine, 0, "it is too late");
    // And the next ones as if nothing had been.
    send_by_engine_alone(&bed, 2)?;
    bed.finish()
}

#[test]
fn a_ring_that_goes_is_rung_by_no_engine_and_loses_no_frame() -> Result {
    let bed = boot("signals-rings")?;
    for round in 0..4 {
        let flow = Flow::start(&bed, false, 1)?;
        // While its frames are kept, if the machine is fast enough.
        bed.set_transmit_ring(bed.local, 512 >> (round % 2))?;
        let (_, by_engine) = flow.finish()?;
        assert_eq!(by_engine, 0, "round {round}");
    }
    bed.finish()
}
