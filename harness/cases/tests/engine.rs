// SPDX-License-Identifier: MIT OR Apache-2.0

//! The engine of an accelerator as a PCI device, without its driver.

use cases::{BareDevice, Driver, Options, Result, Testbed};
use engine::{
    descriptor::{COMPLETION, Completion, Descriptor, Operation, SIZE, Status},
    fragment::Fragment,
    regs,
};
use i82576::regs::{rdlen, rdt, rxdctl};
use vm::{GuestMemory, Topology};

const QUEUE: u32 = 1;
/// Where the list of fragments, source and destination are in the accelerator's memory. The ring is at 0.
const LIST: u64 = 0x1000;
const SOURCE: u64 = 0x10_0000;
const DESTINATION: u64 = 0x20_0000;

fn options() -> Options {
    let options = Testbed::options().accelerator(Topology::Switch);
    options.engine().bare()
}

/// An engine of which a queue runs, in a window of all the accelerator's memory.
struct Bench<'b> {
    bed: &'b Testbed,
    device: BareDevice<'b>,
    memory: &'b GuestMemory,
    base: u64,
    tail: u32,
}

impl<'b> Bench<'b> {
    fn new(bed: &'b Testbed) -> Result<Self> {
        let base = bed.bare_device("accelerator")?.bar(2)?;
        let memory = bed.guest.accelerator_memory()?;
        let device = bed.bare_device("engine")?;
        let window = regs::window(QUEUE, 0);
        for (register, value) in [
            (window + regs::WINDOW_BASE_LOW, base as u32),
            (window + regs::WINDOW_BASE_HIGH, (base >> 32) as u32),
            (window + regs::WINDOW_SIZE_LOW, memory.bytes() as u32),
            (regs::queue(QUEUE) + regs::CONTROL, regs::CONTROL_ENABLE),
        ] {
            device.write(register, value)?;
        }
        Ok(Self {
            bed,
            device,
            memory,
            base,
            tail: 0,
        })
    }

    /// Executes a descriptor.
    fn execute(&mut self, descriptor: Descriptor, fragments: &[Fragment]) -> Result<Completion> {
        let list: Vec<u8> = fragments.iter().flat_map(|one| one.encode()).collect();
        self.memory.write(self.base + LIST, &list)?;
        let descriptor = Descriptor {
            list: LIST,
            fragments: fragments.len() as u32,
            ..descriptor
        };
        self.memory.write(self.base, &descriptor.encode())?;
        self.tail += 1;
        let portal = regs::portal(QUEUE);
        self.device.write(portal + regs::TAIL, self.tail)?;
        let head = || Ok(self.device.read(portal + regs::HEAD)?.into());
        self.bed.wait_until(self.tail.into(), head)?;
        let mut bytes = [0; SIZE - COMPLETION];
        self.memory
            .read(self.base + COMPLETION as u64, &mut bytes)?;
        Ok(Completion::decode(bytes).expect("a completion"))
    }
}

#[test]
fn an_engine_gathers_the_accelerators_memory() -> Result {
    const EACH: u32 = 1500;
    const COUNT: u32 = 400;
    let bed = options().boot("engine-gathers")?;
    let mut bench = Bench::new(&bed)?;
    assert_eq!(bench.device.read(regs::ID)?, regs::ID_VALUE);
    let source: Vec<u8> = (0..EACH * COUNT).map(|n| (n % 251) as u8).collect();
    bench.memory.write(bench.base + SOURCE, &source)?;
    // The last one first.
    let fragments: Vec<_> = (0..COUNT)
        .map(|n| Fragment {
            source: (COUNT - 1 - n) * EACH,
            len: EACH,
            destination: (n * EACH).into(),
        })
        .collect();
    let copy = Descriptor {
        operation: Operation::Copy,
        source: SOURCE,
        destination: DESTINATION,
        ..Descriptor::default()
    };
    let completion = bench.execute(copy, &fragments)?;
    let all = Completion {
        status: Status::Done,
        fragments: COUNT,
        bytes: source.len() as u64,
    };
    assert_eq!(completion, all);
    let mut gathered = vec![0; source.len()];
    let at = bench.base + DESTINATION;
    bench.memory.read(at, &mut gathered)?;
    let expected = source.chunks(EACH as usize).rev().flatten();
    assert!(gathered.iter().eq(expected));
    bed.finish()
}

#[test]
fn an_engines_signal_rings_the_tail_of_a_nic_of_ours() -> Result {
    const NIC_QUEUE: u16 = 2;
    let options = options().driver(Driver::RigbModel);
    let bed = options.boot("engine-signals")?;
    let nic = bed.bare_device("nic0-1")?;
    nic.write(rdlen(NIC_QUEUE).0, 64 * 16)?;
    nic.write(rxdctl(NIC_QUEUE).0, rxdctl::ENABLE)?;
    let tail = rdt(NIC_QUEUE).0;
    let mut bench = Bench::new(&bed)?;
    let address = nic.bar(0)? + u64::from(tail);
    for (register, value) in [
        (regs::SIGNAL_LOW, address as u32),
        (regs::SIGNAL_HIGH, (address >> 32) as u32),
        (regs::SIGNAL_VALUE, 42),
    ] {
        bench.device.write(regs::queue(QUEUE) + register, value)?;
    }
    let signal = Descriptor {
        signal: true,
        ..Descriptor::default()
    };
    let completion = bench.execute(signal, &[])?;
    assert_eq!(completion.status, Status::Done);
    bed.wait_until(42, || Ok(nic.read(tail)?.into()))?;
    bed.finish()
}
