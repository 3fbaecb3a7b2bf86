// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Register offsets and encodings, against the formulas of the kernel's igb headers and of QEMU's
//! `igb_regs.h`.

use i82576::limits;
use i82576::regs::{self, fc, ledctl, Reg};
use proptest::prelude::*;

type Offset = fn(u16) -> Reg;

/// As `igb_set_vf_rate_limit()` has it.
#[test]
fn a_rate_is_how_many_times_longer_a_frame_takes() {
    use regs::rttbcnrc::{self, RS_ENA};

    for (link, rate) in [(1000, 1), (1000, 3), (1000, 999), (100, 7), (10, 9)] {
        let (whole, rest) = (link / rate, link % rate);
        let igb = RS_ENA | whole << 14 | ((rest << 14) / rate);
        assert_eq!(rttbcnrc::encode(link, rate), igb, "{rate} of {link}");
        assert_eq!(rttbcnrc::factor(igb), Some(igb & !RS_ENA));
    }
    for (link, rate) in [(1000, 0), (1000, 1000), (100, 1000), (2500, 1)] {
        assert_eq!(rttbcnrc::encode(link, rate), 0);
    }
    assert_eq!(rttbcnrc::factor(0), None);
    let offsets = [regs::RTTDQSEL, regs::RTTBCNRM, regs::RTTBCNRC].map(|reg| reg.0);
    assert_eq!(offsets, [0x3604, 0x3690, 0x36b0]);
}

/// Per-queue registers of the 0x40-byte blocks: name, function, offset in the block of queue 0,
/// and the offset of queue 0 in the 82575's layout, 0x100 bytes a queue.
const QUEUE_REGISTERS: [(&str, Offset, u32, Option<u32>); 17] = [
    ("RDBAL", regs::rdbal, 0xc000, Some(0x2800)),
    ("RDBAH", regs::rdbah, 0xc004, Some(0x2804)),
    ("RDLEN", regs::rdlen, 0xc008, Some(0x2808)),
    ("SRRCTL", regs::srrctl, 0xc00c, Some(0x280c)),
    ("RDH", regs::rdh, 0xc010, Some(0x2810)),
    ("RXCTL", regs::rxctl, 0xc014, Some(0x2814)),
    ("RDT", regs::rdt, 0xc018, Some(0x2818)),
    ("RXDCTL", regs::rxdctl, 0xc028, Some(0x2828)),
    ("RQDPC", regs::rqdpc, 0xc030, None),
    ("TDBAL", regs::tdbal, 0xe000, Some(0x3800)),
    ("TDBAH", regs::tdbah, 0xe004, Some(0x3804)),
    ("TDLEN", regs::tdlen, 0xe008, Some(0x3808)),
    ("TDH", regs::tdh, 0xe010, Some(0x3810)),
    ("TXCTL", regs::txctl, 0xe014, Some(0x3814)),
    ("TDT", regs::tdt, 0xe018, Some(0x3818)),
    ("TXDCTL", regs::txdctl, 0xe028, Some(0x3828)),
    ("TDWBAL", regs::tdwbal, 0xe038, Some(0x3838)),
];

/// All other arrays: name, function, first offset, stride, elements.
const ARRAYS: [(&str, Offset, u32, u32, u16); 20] = [
    ("PSRTYPE", regs::psrtype, 0x5480, 4, 16),
    ("MTA", regs::mta, 0x5200, 4, limits::MULTICAST_TABLE),
    ("VFTA", regs::vfta, 0x5600, 4, limits::VLAN_TABLE),
    ("RSSRK", regs::rssrk, 0x5c80, 4, 10),
    ("RETA", regs::reta, 0x5c00, 4, 32),
    ("FTQF", regs::ftqf, 0x59e0, 4, limits::FIVE_TUPLE_FILTERS),
    ("SAQF", regs::saqf, 0x5980, 4, limits::FIVE_TUPLE_FILTERS),
    ("DAQF", regs::daqf, 0x59a0, 4, limits::FIVE_TUPLE_FILTERS),
    ("SPQF", regs::spqf, 0x59c0, 4, limits::FIVE_TUPLE_FILTERS),
    ("IMIR", regs::imir, 0x5a80, 4, limits::FIVE_TUPLE_FILTERS),
    (
        "IMIREXT",
        regs::imirext,
        0x5aa0,
        4,
        limits::FIVE_TUPLE_FILTERS,
    ),
    ("ETQF", regs::etqf, 0x5cb0, 4, 8),
    ("VMOLR", regs::vmolr, 0x5ad0, 4, 8),
    ("EITR", regs::eitr, 0x1680, 4, 25),
    ("IVAR", regs::ivar, 0x1700, 4, 8),
    ("IP4AT", regs::ip4at, 0x5840, 8, 4),
    ("IP6AT", regs::ip6at, 0x5880, 4, 4),
    ("WUPM", regs::wupm, 0x5a00, 4, 32),
    ("RAL", regs::ral, 0x5400, 8, 16),
    ("RAH", regs::rah, 0x5404, 8, 16),
];

/// The igb headers' formula for a per-queue register: queues 0 to 3 in the 82575's block, the
/// rest in the 0x40-byte blocks.
fn igb_formula(n: u32, low: u32, high: u32) -> u32 {
    if n < 4 {
        low + n * 0x100
    } else {
        high + n * 0x40
    }
}

#[test]
fn every_queue_has_its_registers_in_its_own_block_of_64_bytes() {
    for (name, register, base, _) in QUEUE_REGISTERS {
        for q in 0..limits::MAX_RX_QUEUES {
            let expected = base + 0x40 * u32::from(q);
            assert_eq!(register(q), Reg(expected), "{name} of queue {q}");
        }
    }
}

#[test]
fn queues_from_4_on_agree_with_the_igb_headers_and_the_first_4_are_aliases() {
    for (name, register, _, legacy) in QUEUE_REGISTERS {
        let Some(legacy) = legacy else { continue };
        for q in 0..16u16 {
            let igb = igb_formula(q.into(), legacy, register(0).0);
            if q >= 4 {
                assert_eq!(register(q).0, igb, "{name} of queue {q}");
            } else {
                // An alias keeps the place in the block.
                assert_eq!(register(q).0 & 0x3f, igb & 0x3f, "{name} of queue {q}");
            }
        }
    }
}

#[test]
fn array_elements_are_where_the_igb_headers_put_them() {
    for (name, register, base, stride, count) in ARRAYS {
        for n in 0..count {
            let expected = base + stride * u32::from(n);
            assert_eq!(register(n), Reg(expected), "{name}({n})");
        }
    }
}

#[test]
fn flexible_filters_are_tables_of_16_rows_of_two_registers_with_bytes_and_one_with_their_mask() {
    let tables = [0x9000, 0x9100, 0x9200, 0x9300, 0x9a00, 0x9b00];
    for (filter, table) in (0..limits::FLEXIBLE_FILTERS).zip(tables) {
        for row in 0..16u16 {
            let at = table + 0x10 * u32::from(row);
            assert_eq!(regs::fhft_value(filter, 2 * row), Reg(at));
            assert_eq!(regs::fhft_value(filter, 2 * row + 1), Reg(at + 4));
            assert_eq!(regs::fhft_mask(filter, row), Reg(at + 8));
        }
        assert_eq!(regs::fhft_length(filter), Reg(table + 0xfc));
    }
}

#[test]
fn receive_addresses_from_16_on_are_in_the_second_bank() {
    for n in 16..limits::RECEIVE_ADDRESSES {
        assert_eq!(
            regs::ral(n),
            Reg(0x54e0 + 8 * (u32::from(n) - 16)),
            "RAL({n})"
        );
        assert_eq!(
            regs::rah(n),
            Reg(0x54e4 + 8 * (u32::from(n) - 16)),
            "RAH({n})"
        );
    }
}

#[test]
fn no_two_registers_share_an_offset() {
    let mut seen = std::collections::HashMap::new();
    let queues = QUEUE_REGISTERS.iter().map(|&(name, f, ..)| (name, f, 16));
    let high = ("TDWBAH", regs::tdwbah as Offset, 16);
    let arrays = ARRAYS.iter().map(|&(name, f, _, _, count)| {
        let addresses = matches!(name, "RAL" | "RAH");
        (
            name,
            f,
            if addresses {
                limits::RECEIVE_ADDRESSES
            } else {
                count
            },
        )
    });
    for (name, register, count) in queues.chain(arrays).chain([high]) {
        for n in 0..count {
            let offset = register(n).0;
            if let Some(other) = seen.insert(offset, format!("{name}({n})")) {
                panic!("{name}({n}) and {other} are both at {offset:#x}");
            }
        }
    }
}

#[test]
fn no_index_leads_out_of_the_register_window() {
    let queues = QUEUE_REGISTERS.iter().map(|&(name, f, ..)| (name, f));
    let arrays = ARRAYS.iter().map(|&(name, f, ..)| (name, f));
    for (name, register) in queues.chain(arrays) {
        for n in 0..=u16::MAX {
            let offset = register(n).offset();
            assert!(
                offset + 4 <= regs::BAR_SIZE && offset % 4 == 0,
                "{name}({n}) is at {offset:#x}"
            );
        }
    }
}

#[test]
fn vectors_are_allocated_in_the_column_major_order_of_the_82576() {
    // QEMU's igb_ivar_entry_rx and igb_ivar_entry_tx give the byte within the IVAR array.
    for q in 0..16u16 {
        let rx_byte = if q < 8 { q * 4 } else { (q - 8) * 4 + 2 };
        for (name, (register, shift), byte) in [
            ("rx", regs::ivar_rx(q), rx_byte),
            ("tx", regs::ivar_tx(q), rx_byte + 1),
        ] {
            assert_eq!(
                register.0 + shift / 8,
                0x1700 + u32::from(byte),
                "{name} queue {q}: {register:?} shift {shift}"
            );
        }
    }
    assert_eq!(regs::IVAR_MISC, Reg(0x1740));
    assert_eq!(regs::ivar_misc::OTHER_SHIFT, 8);
}

#[test]
fn an_ivar_entry_is_valid_and_names_its_vector() {
    for vector in 0..25 {
        assert_eq!(regs::ivar_entry(vector), 0x80 | vector);
    }
}

#[test]
fn descriptor_type_and_buffer_sizes_land_in_their_srrctl_fields() {
    use regs::srrctl::{encode, DescType};

    // The igb header's constants: DESCTYPE in place, sizes shifted as its driver does.
    assert_eq!(
        encode(2, 0, DescType::OneBuffer, false),
        0x0200_0000 | (2048 >> 10)
    );
    assert_eq!(
        encode(4, 256 / 64, DescType::HeaderSplit, true),
        0x8000_0000 | 0x0400_0000 | (256 << 2) | (4096 >> 10)
    );
    assert_eq!(
        encode(1, 960 / 64, DescType::HeaderSplitAlways, false),
        0x0a00_0000 | (960 << 2) | 1
    );
    assert_eq!(encode(1, 0, DescType::Legacy, false), 1);
}

#[test]
fn payload_buffers_from_a_page_to_the_largest_power_of_two_are_encoded_as_they_are() {
    use i82576::limits::{MAX_FRAME, PAYLOAD_BUFFER_MAX, PAYLOAD_BUFFER_UNIT};
    use regs::srrctl::{encode, DescType};

    let sizes: Vec<u32> = (12..32)
        .map(|order| 1 << order)
        .take_while(|&bytes| bytes <= PAYLOAD_BUFFER_MAX)
        .collect();
    assert_eq!(sizes, [4096, 8192, 16_384, 32_768, 65_536]);
    for &bytes in &sizes {
        let value = encode(
            bytes / PAYLOAD_BUFFER_UNIT,
            256 / 64,
            DescType::HeaderSplit,
            true,
        );
        // The model's and the C driver's reading: seven bits of KiB.
        assert_eq!((value & 0x7f) << 10, bytes);
        assert_eq!(value & !0x7f, 0x8400_0400, "{bytes} bytes spill");
    }
    assert!(
        sizes[1] < MAX_FRAME && MAX_FRAME <= sizes[2],
        "16 KiB are enough for any frame, and 8 KiB are not"
    );
}

#[test]
fn buffer_sizes_beyond_the_srrctl_fields_never_spill_into_others() {
    use regs::srrctl::{encode, DescType, BSIZEHEADER_MAX, BSIZEPACKET_MAX};

    let most = encode(
        BSIZEPACKET_MAX,
        BSIZEHEADER_MAX,
        DescType::HeaderSplit,
        false,
    );
    assert_eq!(most, 0x0400_0f7f);
    for excess in [128, 4096, u32::MAX] {
        assert_eq!(encode(excess, excess, DescType::HeaderSplit, false), most);
    }
}

#[test]
fn phy_commands_address_the_internal_phy() {
    use regs::{mdic, phy};

    // The value that brings up the link of the model after a reset.
    assert_eq!(phy::CR_AUTONEG, 0x1340);
    assert_eq!(mdic::write(phy::CONTROL, 0x1340), 0x0420_1340);
    assert_eq!(mdic::read(phy::STATUS), 0x0821_0000);
    assert_eq!(mdic::read(31), 0x083f_0000);
}

#[test]
fn link_speed_is_read_from_status() {
    use regs::status::{speed, FD, LU, SPEED_100, SPEED_1000};

    assert_eq!(speed(LU | FD), 10);
    assert_eq!(speed(LU | SPEED_100), 100);
    assert_eq!(speed(LU | SPEED_1000), 1000);
    assert_eq!(speed(LU | SPEED_100 | SPEED_1000), 1000);
}

#[test]
fn a_mac_address_is_stored_first_byte_lowest() {
    let (low, high) = regs::rah::encode([0x52, 0x54, 0x00, 0x12, 0x34, 0x56]);
    assert_eq!((low, high), (0x1200_5452, 0x8000_5634));
}

#[test]
fn interrupts_are_throttled_in_microseconds() {
    // The kernel's IGB_START_ITR of 648 is 162 us, about 6000 interrupts a second.
    assert_eq!(regs::eitr::interval(162), 648);
    assert_eq!(regs::eitr::interval(0), 0);
    assert_eq!(regs::eitr::interval(u32::MAX), 0x7ffc);
}

#[test]
fn thresholds_use_the_fields_of_rxdctl_and_txdctl() {
    assert_eq!(regs::rxdctl::thresholds(8, 8, 4), 8 | 8 << 8 | 4 << 16);
    assert_eq!(regs::txdctl::thresholds(0xff, 0xff, 0xff), 0x001f_1f1f);
}

proptest! {
    #[test]
    fn replacing_an_ivar_entry_leaves_the_other_three(
        before: u32,
        column in 0u32..4,
        vector in 0u8..25,
    ) {
        let entry = regs::ivar_entry(vector);
        let after = regs::ivar_replace(before, column * 8, entry);
        let mut expected = before.to_le_bytes();
        expected[column as usize] = entry;
        prop_assert_eq!(after.to_le_bytes(), expected);
    }

    #[test]
    fn an_mdi_operation_is_decoded_only_when_it_is_ready(value: u32) {
        use regs::mdic::{Outcome, decode};

        let expected = match (value >> 28 & 1, value >> 30 & 1) {
            (0, _) => Outcome::Busy,
            (_, 0) => Outcome::Done((value & 0xffff) as u16),
            _ => Outcome::Failed,
        };
        prop_assert_eq!(decode(value), expected);
    }

    #[test]
    fn an_eeprom_word_is_decoded_only_when_it_is_done(word in 0u16..0x4000, data: u16) {
        use regs::eerd;

        prop_assert_eq!(eerd::read(word), u32::from(word) << 2 | 1);
        let value = u32::from(data) << 16 | u32::from(word) << 2;
        prop_assert_eq!(eerd::data(value | 1), None);
        prop_assert_eq!(eerd::data(value | 2), Some(data));
    }

    #[test]
    fn a_receive_address_survives_its_registers(mac: [u8; 6]) {
        let (low, high) = regs::rah::encode(mac);
        prop_assert_eq!(regs::rah::decode(low, high), Some(mac));
        prop_assert_eq!(regs::rah::decode(low, high & !regs::rah::AV), None);
    }
}

#[test]
fn pause_thresholds_leave_room_for_two_frames() {
    let (low, high) = fc::thresholds(limits::MAX_FRAME);
    assert_eq!(high % 16, 0);
    assert_eq!(low & !fc::XONE, high - 16);
    assert_ne!(low & fc::XONE, 0);
    assert!(high + 2 * limits::MAX_FRAME <= limits::RX_PACKET_BUFFER);
    assert!(high + 2 * limits::MAX_FRAME + 16 > limits::RX_PACKET_BUFFER);
}

#[test]
fn all_four_lights_go_on_and_off_and_none_blinks() {
    assert_eq!(ledctl::all(true), 0x0e0e_0e0e);
    assert_eq!(ledctl::all(false), 0x0f0f_0f0f);
}
