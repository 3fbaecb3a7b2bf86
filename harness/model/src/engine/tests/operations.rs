// SPDX-License-Identifier: MIT OR Apache-2.0

//! What descriptors do, next to loops over bytes.

use engine::{
    descriptor::{Completion, Descriptor, NAN_F32, Operation, Status},
    fragment::Fragment,
};
use proptest::prelude::*;

use super::{Bench, rounding::nearest, share};

/// Bytes of the windows of sources and destinations.
const SOURCES: u64 = 0x3000;
const DESTINATIONS: u64 = 0x3000;
/// Where they are, from the beginning of window 0.
const SOURCE: u64 = 0x8000;
const DESTINATION: u64 = 0x10000;
/// Their windows.
const FROM: u8 = 3;
const TO: u8 = 15;

/// A descriptor's work, byte by byte.
struct Reference {
    sources: Vec<u8>,
    destinations: Vec<u8>,
    fragments: u32,
    bytes: u64,
}

impl Reference {
    fn execute(&mut self, task: &Descriptor, fragments: &[Fragment]) -> Status {
        if task.operation == Operation::Nothing {
            return Status::Done;
        }
        for fragment in fragments {
            let len = u64::from(fragment.len);
            let wide = |base: u64, offset: u64| u128::from(base) + u128::from(offset);
            let from = wide(task.source, fragment.source.into());
            let to = wide(task.destination, fragment.destination);
            if len % u64::from(task.operation.unit()) != 0 {
                return Status::Malformed;
            }
            let reads = task.operation != Operation::Fill;
            if reads && from + u128::from(len) > SOURCES.into()
                || to + u128::from(len) > DESTINATIONS.into()
            {
                return Status::Outside;
            }
            let (from, to) = (from as usize, to as usize);
            for at in 0..len as usize {
                match task.operation {
                    Operation::Fill => {
                        self.destinations[to + at] = task.value.to_le_bytes()[at % 4];
                    }
                    Operation::Copy => self.destinations[to + at] = self.sources[from + at],
                    Operation::Compare if self.destinations[to + at] != self.sources[from + at] => {
                        self.bytes += at as u64;
                        return Status::Different;
                    }
                    Operation::SumF32 if at % 4 == 0 => self.add_f32(from + at, to + at),
                    Operation::SumBf16 if at % 2 == 0 => self.add_bf16(from + at, to + at),
                    _ => {}
                }
            }
            self.fragments += 1;
            self.bytes += len;
        }
        Status::Done
    }

    // Sums in binary64 are exact enough: rounding twice is rounding once there.

    fn add_f32(&mut self, from: usize, to: usize) {
        let number = |bytes: &[u8]| f64::from(f32::from_le_bytes(bytes.try_into().unwrap()));
        let to = &mut self.destinations[to..to + 4];
        let sum = (number(to) + number(&self.sources[from..from + 4])) as f32;
        let bits = if sum.is_nan() { NAN_F32 } else { sum.to_bits() };
        to.copy_from_slice(&bits.to_le_bytes());
    }

    fn add_bf16(&mut self, from: usize, to: usize) {
        let number = |bytes: &[u8]| f64::from(f32::from_le_bytes([0, 0, bytes[0], bytes[1]]));
        let to = &mut self.destinations[to..to + 2];
        let sum = (number(to) + number(&self.sources[from..from + 2])) as f32;
        to.copy_from_slice(&nearest(sum).to_le_bytes());
    }
}

/// Mostly within the windows and whole numbers, so that most of what is generated has something to do.
fn fragments() -> impl Strategy<Value = Fragment> {
    let inside = (0..SOURCES as u32 / 2, 0..0x300u32, 0..DESTINATIONS / 2);
    let inside = inside.prop_map(|(source, len, destination)| (source, len * 4, destination));
    let odd = (0..SOURCES as u32, 0..0x300u32, 0..DESTINATIONS);
    prop_oneof![8 => inside, 1 => odd, 1 => any::<(u32, u32, u64)>()].prop_map(
        |(source, len, destination)| Fragment {
            source,
            len,
            destination,
        },
    )
}

fn bases() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..0x40u64, 1 => any::<u64>()]
}

proptest! {
    #[test]
    fn memory_and_completion_are_as_if_each_byte_were_worked_on_by_itself(
        operation in prop::sample::select(&Operation::ALL[..]),
        fragments in prop::collection::vec(fragments(), 0..6),
        (source, destination, value) in (bases(), bases(), any::<u32>()),
        seed in any::<u64>(),
        alike in any::<bool>(),
    ) {
        let mut bench = Bench::new();
        let random = |seed: u64, len: u64| {
            let step = |n: u64| (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
            (0..len).map(|n| step(n) as u8).collect::<Vec<_>>()
        };
        let mut sources = random(seed, SOURCES);
        let mut destinations = random(!seed, DESTINATIONS);
        if alike {
            // For comparisons to find something in common, and a difference here and there.
            for byte in &mut sources {
                *byte = u8::from(*byte == 0);
            }
            destinations.fill(0);
        }
        bench.open(0, FROM.into(), share(0) + SOURCE, SOURCES);
        bench.open(0, TO.into(), share(0) + DESTINATION, DESTINATIONS);
        bench.bytes(0, SOURCE, SOURCES as usize).copy_from_slice(&sources);
        bench.bytes(0, DESTINATION, DESTINATIONS as usize).copy_from_slice(&destinations);
        let task = Descriptor {
            operation, source, destination, value,
            source_window: FROM,
            destination_window: TO,
            ..Descriptor::default()
        };
        let mut reference = Reference { sources, destinations, fragments: 0, bytes: 0 };
        let status = reference.execute(&task, &fragments);
        let expected = Completion {
            status, fragments: reference.fragments, bytes: reference.bytes,
        };
        prop_assert_eq!(bench.execute(&task, &fragments), Some(expected));
        prop_assert!(bench.bytes(0, SOURCE, SOURCES as usize) == reference.sources);
        prop_assert!(bench.bytes(0, DESTINATION, DESTINATIONS as usize) == reference.destinations);
        prop_assert_eq!(bench.violations(), []);
    }
}
