// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tables of multicast addresses and VLANs.

use i82576::filter::{multicast_bit, Table};
use proptest::prelude::*;

#[test]
fn a_multicast_address_selects_a_bit_as_the_datasheet_says() {
    // 82576 datasheet, 8.10.15: bits 47:36 of the address, whose last byte is 47:40.
    assert_eq!(multicast_bit([0x01, 0x00, 0x5e, 0x00, 0x00, 0x01]), 0x010);
    assert_eq!(multicast_bit([0x33, 0x33, 0xff, 0x12, 0x34, 0x56]), 0x563);
    assert_eq!(multicast_bit([0xff; 6]), 0xfff);
}

proptest! {
    #[test]
    fn a_table_holds_what_was_set_and_not_cleared(
        changes in prop::collection::vec((0u16..4096, any::<bool>()), 0..200),
    ) {
        let mut table = Table::EMPTY;
        let mut model = [false; 4096];
        for (bit, on) in changes {
            table.set(bit, on);
            model[usize::from(bit)] = on;
        }
        let registers: Vec<_> = table.registers().collect();
        prop_assert_eq!(registers.len(), 128);
        for (bit, on) in (0u16..).zip(model) {
            prop_assert_eq!(table.contains(bit), on);
            let register = registers[usize::from(bit >> 5)];
            prop_assert_eq!(register >> (bit & 31) & 1 == 1, on);
        }
    }

    #[test]
    fn what_is_behind_the_twelfth_bit_of_a_number_does_not_count(bit: u16) {
        let mut table = Table::EMPTY;
        table.set(bit, true);
        prop_assert!(table.contains(bit % 4096));
    }
}
