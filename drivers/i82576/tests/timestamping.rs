// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Which frames get a timestamp, against what the kernel's igb writes.

use i82576::regs;
use i82576::timestamping::{Messages, Timestamping};

#[test]
fn no_timestamps_are_taken_at_first() {
    let none = Timestamping::default();
    assert_eq!(none.tsynctxctl(), 0);
    assert_eq!(none.tsyncrxctl(), 0);
    assert_eq!(none.tsyncrxcfg(), 0);
    assert_eq!(none.etqf(), 0);
}

#[test]
fn tx_and_rx_timestamps_are_independent() {
    let tx = Timestamping {
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
        let timestamping = Timestamping { tx: false, rx };
        assert_eq!(timestamping.tsynctxctl(), 0, "{rx:?}");
        assert_eq!(timestamping.tsyncrxctl(), control, "{rx:?}");
        assert_eq!(timestamping.tsyncrxcfg(), config, "{rx:?}");
        assert_eq!(timestamping.etqf(), 0x4400_88f7, "{rx:?}");
    }
}

#[test]
fn the_system_time_counts_nanoseconds() {
    // INCPERIOD is 1, INCVALUE 16 << 19.
    assert_eq!(regs::timinca::NANOSECONDS, 0x0180_0000);
}
