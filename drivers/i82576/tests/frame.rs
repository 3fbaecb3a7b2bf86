// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The length of frames without their padding.

use i82576::frame::{unpadded_len, LOOKED_AT};
use proptest::prelude::*;

/// A frame's headers: addresses, `tags` VLAN tags, type, and an IP header with `length` in its
/// length field.
fn headers(tags: usize, ethertype: u16, at: usize, length: u16) -> Vec<u8> {
    let mut frame = vec![0x52; 12];
    for tag in 0..tags {
        let tpid: u16 = if tag + 1 < tags { 0x88a8 } else { 0x8100 };
        frame.extend(tpid.to_be_bytes());
        frame.extend([0, 7]);
    }
    frame.extend(ethertype.to_be_bytes());
    let mut ip = vec![0; 40];
    ip[at..at + 2].copy_from_slice(&length.to_be_bytes());
    frame.extend(ip);
    frame
}

#[test]
fn a_padded_ipv4_acknowledgement_has_54_bytes() {
    assert_eq!(unpadded_len(&headers(0, 0x0800, 2, 40)), Some(54));
}

#[test]
fn vlan_tags_count_and_are_skipped() {
    assert_eq!(unpadded_len(&headers(1, 0x0800, 2, 40)), Some(58));
    assert_eq!(unpadded_len(&headers(2, 0x0800, 2, 40)), Some(62));
    assert_eq!(unpadded_len(&headers(1, 0x86dd, 4, 20)), Some(78));
}

#[test]
fn what_is_not_ip_has_no_length() {
    assert_eq!(unpadded_len(&headers(0, 0x0806, 2, 40)), None);
    assert_eq!(unpadded_len(&headers(3, 0x0800, 2, 40)), None);
}

proptest! {
    #[test]
    fn so_many_bytes_are_looked_at_and_no_more(mut frame: [u8; LOOKED_AT + 8], tags in 0usize..3, ip: bool) {
        let (kind, at) = if ip { (0x0800, 2) } else { (0x86dd, 4) };
        let headers = headers(tags, kind, at, 1000);
        let len = headers.len().min(LOOKED_AT);
        frame[..len].copy_from_slice(&headers[..len]);
        let all = unpadded_len(&frame);
        prop_assert!(all.is_some());
        prop_assert_eq!(unpadded_len(&frame[..LOOKED_AT]), all);
    }

    #[test]
    fn the_length_field_says_it_for_ipv4_and_ipv6(tags in 0usize..3, length: u16) {
        let before = 14 + 4 * tags as u32;
        prop_assert_eq!(
            unpadded_len(&headers(tags, 0x0800, 2, length)),
            Some(before + u32::from(length))
        );
        prop_assert_eq!(
            unpadded_len(&headers(tags, 0x86dd, 4, length)),
            Some(before + 40 + u32::from(length))
        );
    }

    #[test]
    fn a_frame_that_is_cut_has_no_length_or_the_right_one(tags in 0usize..3, cut in 0usize..62) {
        let whole = headers(tags, 0x0800, 2, 1000);
        let len = unpadded_len(&whole[..cut.min(whole.len())]);
        prop_assert!(len.is_none() || len == unpadded_len(&whole));
    }
}
