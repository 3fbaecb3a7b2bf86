// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Properties of the layout.

use engine::{
    descriptor::{self, Completion, Descriptor, Operation, Status},
    fragment::Fragment,
    regs::{self, Register},
};
use proptest::prelude::*;

fn descriptors() -> impl Strategy<Value = Descriptor> {
    let windows = any::<(u8, u8, u8)>();
    let numbers = any::<(u32, u32, u64, u64, u64)>();
    let flags = any::<(bool, bool)>();
    (
        prop::sample::select(&Operation::ALL[..]),
        flags,
        windows,
        numbers,
    )
        .prop_map(
            |(operation, (interrupt, signal), windows, numbers)| Descriptor {
                operation,
                interrupt,
                signal,
                source_window: windows.0,
                destination_window: windows.1,
                list_window: windows.2,
                value: numbers.0,
                fragments: numbers.1,
                list: numbers.2,
                source: numbers.3,
                destination: numbers.4,
            },
        )
}

proptest! {
    #[test]
    fn a_descriptor_is_read_as_it_was_written(written in descriptors()) {
        let bytes = written.encode();
        prop_assert_eq!(Descriptor::decode(&bytes), Some(written));
        prop_assert_eq!(Descriptor::wants_interrupt(&bytes), written.interrupt);
    }

    #[test]
    fn a_descriptor_of_any_bytes_is_none_or_is_written_the_same(
        bytes in prop::array::uniform32(any::<u8>()), rest in prop::array::uniform32(any::<u8>())
    ) {
        let mut all = [0; descriptor::SIZE];
        all[..32].copy_from_slice(&bytes);
        all[32..].copy_from_slice(&rest);
        if let Some(read) = Descriptor::decode(&all) {
            prop_assert_eq!(&read.encode()[..descriptor::COMPLETION], &all[..descriptor::COMPLETION]);
        }
    }

    #[test]
    fn a_fragment_is_laid_out_as_nccl_has_it(source: u32, len: u32, destination: u64) {
        let fragment = Fragment { source, len, destination };
        let bytes = fragment.encode();
        prop_assert_eq!(&bytes[..4], &source.to_le_bytes());
        prop_assert_eq!(&bytes[4..8], &len.to_le_bytes());
        prop_assert_eq!(&bytes[8..], &destination.to_le_bytes());
        prop_assert_eq!(Fragment::decode(bytes), fragment);
    }

    #[test]
    fn a_completion_is_read_as_it_was_written(fragments: u32, bytes: u64) {
        for status in [Status::Done, Status::Different, Status::Malformed, Status::Outside, Status::Fault] {
            let completion = Completion { status, fragments, bytes };
            prop_assert_eq!(Completion::decode(completion.encode()), Some(completion));
        }
    }
}

#[test]
fn what_is_not_completed_has_no_completion() {
    let bytes = Descriptor::default().encode();
    let completion = bytes[descriptor::COMPLETION..].try_into().unwrap();
    assert_eq!(Completion::decode(completion), None);
}

#[test]
fn what_must_be_zero_is_looked_at() {
    let good = Descriptor::default().encode();
    for (at, value) in [(0, 6), (1, 4), (9, 1), (11, 1), (40, 1), (47, 1)] {
        let mut bytes = good;
        bytes[at] = value;
        assert_eq!(Descriptor::decode(&bytes), None, "byte {at}");
    }
}

#[test]
fn each_register_is_found_where_it_is() {
    for queue in 0..regs::QUEUES {
        let register = regs::SIGNAL_VALUE;
        let found = Register::at(regs::queue(queue) + register);
        assert_eq!(found, Some(Register::Queue { queue, register }));
        for window in 0..regs::WINDOWS {
            let register = regs::WINDOW_SIZE_LOW;
            let expected = Register::Window {
                queue,
                window,
                register,
            };
            let found = Register::at(regs::window(queue, window) + register);
            assert_eq!(found, Some(expected));
        }
        let register = regs::HEAD;
        let found = Register::at(regs::portal(queue) + register);
        assert_eq!(found, Some(Register::Portal { queue, register }));
    }
    assert_eq!(
        Register::at(regs::RESET),
        Some(Register::Device(regs::RESET))
    );
    assert_eq!(Register::at(0x2000), None);
    assert_eq!(Register::at(0x7ffc), None);
    assert_eq!(Register::at(regs::BAR_SIZE as u32), None);
}
