// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What is stamped, against what the kernel's igb writes.

use i82576::regs;
use i82576::stamping::{Messages, Stamping};

#[test]
fn nothing_is_stamped_at_first() {
    let none = Stamping::default();
    assert_eq!(none.tsynctxctl(), 0);
    assert_eq!(none.tsyncrxctl(), 0);
    assert_eq!(none.tsyncrxcfg(), 0);
    assert_eq!(none.etqf(), 0);
}

#[test]
fn what_is_sent_is_stamped_apart_from_what_is_received() {
    let tx = Stamping {
        tx: true,
        rx: Messages::None,
    };
    assert_eq!(tx.tsynctxctl(), 0x10);
    assert_eq!((tx.tsyncrxctl(), tx.etqf()), (0, 0));
}

#[test]
fn messages_are_found_by_their_ethertype_and_kind() {
    for (rx, control, config) in [
        (Messages::Sync, 0x10, 0x0000),
        (Messages::DelayReq, 0x10, 0x0100),
        (Messages::Event, 0x1a, 0x0000),
    ] {
        let stamping = Stamping { tx: false, rx };
        assert_eq!(stamping.tsynctxctl(), 0, "{rx:?}");
        assert_eq!(stamping.tsyncrxctl(), control, "{rx:?}");
        assert_eq!(stamping.tsyncrxcfg(), config, "{rx:?}");
        assert_eq!(stamping.etqf(), 0x4400_88f7, "{rx:?}");
    }
}

#[test]
fn the_system_time_counts_nanoseconds() {
    // INCPERIOD is 1, INCVALUE 16 << 19.
    assert_eq!(regs::timinca::NANOSECONDS, 0x0180_0000);
}
