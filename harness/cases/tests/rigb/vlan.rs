// SPDX-License-Identifier: MIT OR Apache-2.0

//! One bit of the device has it strip VLAN tags and insert them.

use cases::{Result, Testbed, assert_fails_saying};
use protocol::ethtool::GetFeatures;

/// By their kernel names.
const STRIP: &str = "rx-vlan-hw-parse";
const INSERT: &str = "tx-vlan-hw-insert";

/// Device control, and its VLAN mode bit (82576 datasheet, 8.2.1).
const CTRL: u32 = 0;
const VME: u32 = 1 << 30;

#[test]
fn tags_are_inserted_if_they_are_stripped_and_not_set_apart() -> Result {
    let bed = Testbed::options().boot("vlan-mode")?;
    for on in [true, false, true] {
        bed.set_features(bed.local, &[(STRIP, on)])?;
        let features = bed.guest.call(GetFeatures::on(bed.local))?;
        let active = [STRIP, INSERT].map(|name| features.active.contains(name));
        assert_eq!(active, [on, on]);
        let control = bed.read_register(bed.local, CTRL)?;
        assert_eq!(control & VME != 0, on, "{control:#x}");
    }
    // The log says why.
    bed.show_whole_log()?;
    let refused = bed.set_features(bed.local, &[(INSERT, false)]);
    assert_fails_saying(refused, &format!("feature {INSERT} stays on"));
    bed.wait_logged("tx-vlan-hw-insert follows rx-vlan-hw-parse", 1)?;
    bed.finish()
}
