// SPDX-License-Identifier: MIT OR Apache-2.0

//! Descriptors that a device may have written: any sixteen bytes.

use i82576::{
    rx::{self, Checksum, Layout, WriteBack},
    tx::{self, Context, Data},
};

use crate::input::Input;

/// Decodes what a device may have written, and what a driver writes.
pub fn descriptors(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let raw = [input.any(), input.any()];
    received(raw);
    sent(raw);
    let [lo, hi] = rx::rx_read(input.any(), input.any());
    assert!(
        !rx::is_done(hi),
        "a buffer's address is taken for DD: {lo:#x} {hi:#x}"
    );
}

fn received([lo, hi]: [u64; 2]) {
    let descriptor = WriteBack::from_raw(lo, hi);
    // The fields as the kernel's `union e1000_adv_rx_desc` has them.
    let [_, _, info_low, info_high, hash @ ..] = lo.to_le_bytes();
    let info = u16::from_le_bytes([info_low, info_high]);
    let [status @ .., len_low, len_high, vlan_low, vlan_high] = hi.to_le_bytes();
    let status = u32::from_le_bytes(status);
    let len = u16::from_le_bytes([len_low, len_high]);
    let header = info >> 5 & 0x3ff;
    let (splits, overflows) = (info >> 15 != 0, status >> 23 & 1 != 0);

    assert_eq!(descriptor.done(), status & 1 != 0);
    assert_eq!(descriptor.packet_len(), len);
    assert_eq!(
        descriptor.vlan_tag(),
        u16::from_le_bytes([vlan_low, vlan_high])
    );
    assert_eq!(descriptor.rss_hash(), u32::from_le_bytes(hash));
    let bytes = match descriptor.layout() {
        Layout::Split {
            header: split,
            payload,
        } => {
            assert!(splits && !overflows && split == header && split < 1024);
            (split, payload)
        }
        Layout::HeaderOverflow { len } => {
            assert!(splits && overflows);
            (0, len)
        }
        Layout::HeaderOnly { header: only } => {
            assert!(!splits && only == header && only != 0);
            (only, 0)
        }
        Layout::Unsplit { len } => {
            assert!(!splits);
            (0, len)
        }
    };
    assert!(bytes.1 == len && bytes.0 <= header, "{bytes:?}");
    let checked = descriptor.l4_checksum_checked();
    let wrong = descriptor.l4_checksum_error() || descriptor.ip_checksum_error();
    match descriptor.checksum() {
        Checksum::Verified => assert!(checked && !wrong && descriptor.end_of_packet()),
        Checksum::Bad => assert!(wrong && descriptor.end_of_packet()),
        Checksum::None => {}
    }
    let kind = descriptor.packet_type();
    assert!(kind.ethertype_filter().is_none_or(|number| number < 8));
    assert!(kind.ethertype_filter().is_none() || !(kind.ipv4() || kind.tcp()));
    let rss = descriptor.rss_type();
    assert!(rss.is_hashed() || !rss.has_ports());
}

fn sent(raw: [u64; 2]) {
    let (context, data) = (Context::decode(raw), Data::decode(raw));
    assert!(context.is_none() || data.is_none(), "both: {raw:x?}");
    if let Some(context) = context {
        assert_eq!(Context::decode(context.encode()), Some(context));
        assert!(!tx::is_done(context.encode()[1]));
    }
    if let Some(data) = data {
        assert_eq!(Data::decode(data.encode()), Some(data));
        assert!(!tx::is_done(tx::ended(data.encode())[1]));
    }
    assert!(tx::is_done(tx::write_back()));
}
