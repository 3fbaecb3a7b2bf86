// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the device accepts: its own address, addresses that were added, and receive modes.

use cases::{Ability, Result, Testbed};
use protocol::{
    link::{AddFilter, RemoveFilter, SetMac, SetReceiveMode},
    net::Mac,
};

/// Addresses besides its own that the device filters exactly.
const EXACT: u8 = 15;

const OTHER: Mac = Mac([0x52, 0x54, 0, 0xaa, 0xbb, 0]);
const GROUP: Mac = Mac([0x01, 0x00, 0x5e, 0x7f, 0xab, 0xcd]);

fn other(number: u8) -> Mac {
    let mut mac = OTHER;
    mac.0[5] = number;
    mac
}

#[test]
fn the_device_lets_in_what_was_asked_for_and_nothing_else() -> Result {
    let bed = Testbed::options()
        .needs([Ability::MachineAddress, Ability::MacFilter])
        .boot("filters")?;
    let own = bed.local.mac();
    let check = |mac, wanted, what| bed.assert_filter(mac, &[], own, wanted, what);
    let add = |mac| bed.guest.call(AddFilter::on(bed.local, mac));
    let remove = |mac| bed.guest.call(RemoveFilter::on(bed.local, mac));
    let mode = |promiscuous, all_multicast| {
        bed.guest
            .call(SetReceiveMode::on(bed.local, promiscuous, all_multicast))
    };

    check(own, true, "its own");
    check(OTHER, false, "another's");
    check(GROUP, false, "a group's that nobody joined");

    add(OTHER)?;
    add(GROUP)?;
    for what in ["added", "down and up", "ring"] {
        match what {
            "down and up" => {
                bed.down_and_up(bed.local)?;
                bed.wait_carrier(true)?;
            }
            "ring" => bed.set_receive_ring(bed.local, 256)?,
            _ => {}
        }
        check(OTHER, true, what);
        check(GROUP, true, what);
        check(other(1), false, what);
    }
    remove(OTHER)?;
    remove(GROUP)?;
    check(OTHER, false, "removed");
    check(GROUP, false, "removed");

    for number in 1..=EXACT {
        add(other(number))?;
    }
    check(other(EXACT), true, "the last that fits");
    check(OTHER, false, "all that fit are added");
    add(other(EXACT + 1))?;
    check(other(EXACT + 1), true, "one more than fits");
    for number in 1..=EXACT + 1 {
        remove(other(number))?;
    }
    check(other(1), false, "removed");

    mode(None, Some(true))?;
    check(GROUP, true, "all multicast");
    check(OTHER, false, "all multicast");
    mode(Some(true), Some(false))?;
    check(GROUP, true, "promiscuous");
    check(OTHER, true, "promiscuous");
    mode(Some(false), None)?;
    check(GROUP, false, "no more");
    check(OTHER, false, "no more");

    // QEMU's model looks up unicast frames in the multicast hash table, too, where its first
    // address hits the bit of its own IPv6 solicited-node group. These addresses hit no bit.
    let [first, second] = [other(0x41), other(0x42)];
    for mac in [first, second] {
        bed.guest.call(SetMac::on(bed.local, mac))?;
        bed.assert_filter(mac, &[], mac, true, "the new address");
    }
    bed.assert_filter(first, &[], second, false, "the old address");
    bed.finish()
}
