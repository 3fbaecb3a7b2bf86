// SPDX-License-Identifier: MIT OR Apache-2.0

//! What descriptors say becomes the same frames.

mod common;

use common::{check, frames::packets, ok};
use differential::{
    known,
    transmit::{set_up, transmit},
};
use proptest::prelude::*;

#[test]
fn packets_are_sent_as_by_qemus_nic() {
    let packets = prop::collection::vec(packets(), 1..6);
    check(128, &packets, |ours, igb, packets| {
        ok(set_up(ours))?;
        ok(set_up(igb))?;
        for packet in &packets {
            let mut mine = ok(transmit(ours, packet))?;
            let mut theirs = ok(transmit(igb, packet))?;
            known::sent(packet, &mut mine, &mut theirs);
            prop_assert_eq!(&mine, &theirs, "of {:?}", packet);
        }
        Ok(())
    });
}
