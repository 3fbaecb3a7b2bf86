// SPDX-License-Identifier: MIT OR Apache-2.0

//! Whatever a user writes, nothing but the queue's windows is reached.

use engine::{
    descriptor::{Descriptor, SIZE},
    regs,
};
use proptest::prelude::*;

use super::{Bench, Event, LIST, MEMORY, SHARE, share};

/// The end of what the user's windows have, from the beginning of the queue's share.
const END: u64 = SHARE;

/// Descriptors of any bytes, and some that have sense but for their numbers.
fn descriptors() -> impl Strategy<Value = [u8; SIZE]> {
    let any_bytes = prop::collection::vec(any::<u8>(), SIZE);
    let any_bytes = any_bytes.prop_map(|bytes| bytes.try_into().unwrap());
    let windows = (0..6u8, 0..6u8, 0..6u8);
    let numbers = (0..40u32, 0..0x2000u64, near_limits(), near_limits(), 0..7u8);
    let sensible = (windows, numbers).prop_map(|(windows, numbers)| {
        let mut bytes = Descriptor {
            source_window: windows.0,
            destination_window: windows.1,
            list_window: windows.2,
            fragments: numbers.0,
            list: numbers.1 & !0xf,
            source: numbers.2,
            destination: numbers.3,
            interrupt: true,
            signal: true,
            ..Descriptor::default()
        }
        .encode();
        bytes[0] = numbers.4;
        bytes
    });
    prop_oneof![1 => any_bytes, 8 => sensible]
}

fn near_limits() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..0x3000u64, 1 => any::<u64>(), 1 => u64::MAX - 0x1000..=u64::MAX]
}

proptest! {
    #[test]
    fn any_bytes_reach_no_memory_outside_the_windows(
        descriptors in prop::collection::vec(descriptors(), 1..=4),
        lists in prop::collection::vec(any::<u8>(), 0x1000),
        masks in prop::collection::vec(any::<bool>(), 0x100),
        windows in prop::collection::vec((0..END, near_limits()), 4),
        tail in 0..8u32,
    ) {
        const QUEUE: u32 = 2;
        let mut bench = Bench::new();
        // Windows 1 to 4 overlap each other, and lists and rings are written to by what they say.
        for ((offset, size), window) in windows.iter().zip(1..) {
            let size = (*size).min(END - offset);
            bench.open(QUEUE, window, share(QUEUE) + offset, size);
        }
        // Small numbers in most fragments, so that some of them are inside.
        let mut lists = lists;
        for (fragment, keep) in lists.chunks_mut(16).zip(&masks) {
            if *keep {
                for high in [2, 3, 6, 7, 10, 11, 12, 13, 14, 15] {
                    fragment[high] = 0;
                }
                fragment[1] &= 0x0f;
                fragment[5] &= 0x0f;
                fragment[9] &= 0x0f;
            }
        }
        bench.bytes(QUEUE, LIST, lists.len()).copy_from_slice(&lists);
        for (descriptor, at) in descriptors.iter().zip(0u64..) {
            bench.bytes(QUEUE, at * SIZE as u64, SIZE).copy_from_slice(descriptor);
        }
        let before = bench.memory.bytes.clone();
        bench.write(regs::portal(QUEUE) + regs::TAIL, tail);
        bench.run();
        let open = windows.iter().map(|(offset, size)| (*offset, (*size).min(END - offset)));
        let open: Vec<_> = open.chain([(0, SHARE)]).collect();
        for event in &bench.memory.events {
            let (address, len) = match event {
                Event::Read(address, len) => (*address, *len),
                Event::Write(address, bytes) => (*address, bytes.len()),
                Event::Interrupt(vector) => {
                    prop_assert_eq!(u32::from(*vector), QUEUE);
                    continue;
                }
            };
            let inside = open.iter().any(|(offset, size)| {
                let start = share(QUEUE) + offset;
                address >= start && address + len as u64 <= start + size
            });
            prop_assert!(inside, "{len} bytes at {address:#x}");
        }
        let start = (share(QUEUE) - super::BASE) as usize;
        let end = start + SHARE as usize;
        prop_assert!(bench.memory.bytes[..start] == before[..start]);
        prop_assert!(bench.memory.bytes[end..MEMORY] == before[end..]);
        prop_assert_eq!(bench.head(QUEUE) == tail, tail <= 4);
        prop_assert_eq!(bench.violations(), []);
    }

    #[test]
    fn any_registers_are_written_without_harm(
        writes in prop::collection::vec(
            (0..regs::BAR_SIZE as u32 / 4, prop_oneof![any::<u32>(), 0..4u32]), 0..200
        ),
        driver in prop::collection::vec((0..0x20u32, any::<u32>()), 0..40),
    ) {
        let mut bench = Bench::new();
        for (word, value) in writes {
            bench.write(word * 4, value);
            bench.elapse();
        }
        for (word, value) in driver {
            bench.set(1, word * 4, value);
            bench.write(regs::portal(1) + regs::TAIL, value & 7);
            bench.elapse();
            let _ = bench.engine.read(regs::queue(1) + word * 4);
        }
        bench.run();
    }
}
