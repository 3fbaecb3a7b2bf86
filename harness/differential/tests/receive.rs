// SPDX-License-Identifier: MIT OR Apache-2.0

//! What comes from the wire does the same to memory and registers.

mod common;

use common::{check, frames::frames, ok};
use differential::{
    Hex, known, place,
    receive::{Settings, receive, set_up},
};
use i82576::regs::{ctrl, mrqc, rctl, rfctl, rxcsum, srrctl};
use proptest::{array, prelude::*, sample::select};

/// Some of these bits.
fn some_of<const N: usize>(bits: [u32; N]) -> impl Strategy<Value = u32> {
    any::<u32>().prop_map(move |chosen| {
        let chosen = (0..).zip(bits).filter(|(n, _)| chosen >> n & 1 != 0);
        chosen.fold(0, |value, (_, bit)| value | bit)
    })
}

/// Buffers for all that comes.
const ENOUGH: u16 = 48;

/// Any settings of a receiver, whose first queue may run out of buffers.
fn settings() -> impl Strategy<Value = Settings> {
    use srrctl::DescType::{HeaderSplit, HeaderSplitAlways, OneBuffer};
    let split = (
        1u32..=2,
        2u32..=15,
        select(vec![OneBuffer, HeaderSplit, HeaderSplitAlways]),
    )
        .prop_map(|(payload, header, kind)| srrctl::encode(payload, header, kind, true));
    // QEMU's splits whatever these say.
    let types = prop_oneof![3 => Just(known::ALL_TYPES), 1 => any::<u32>().prop_map(|bits| bits & known::ALL_TYPES)];
    let port = (
        some_of([ctrl::VME]),
        some_of([rctl::UPE, rctl::MPE, rctl::BAM, rctl::LPE, rctl::VFE]),
        prop_oneof![Just(1518u32), Just(1522), Just(9600), 64u32..1600],
        some_of([rxcsum::IPOFL, rxcsum::TUOFL, rxcsum::PCSD]),
        some_of([rfctl::IPV6_XSUM_DIS, rfctl::IPFRSP_DIS]),
        some_of([
            mrqc::ENABLE_RSS,
            mrqc::RSS_FIELD_IPV4,
            mrqc::RSS_FIELD_IPV4_TCP,
            mrqc::RSS_FIELD_IPV4_UDP,
            mrqc::RSS_FIELD_IPV6,
            mrqc::RSS_FIELD_IPV6_TCP,
            mrqc::RSS_FIELD_IPV6_UDP,
        ]),
    );
    let reta = array::uniform32(any::<u32>().prop_map(|value| value & 0x0303_0303));
    let buffers = prop_oneof![2 => Just(ENOUGH), 1 => 0..8u16];
    let queues = (array::uniform4(types), array::uniform4(split), buffers);
    (port, any::<[u32; 10]>(), reta, any::<u32>(), queues).prop_map(
        |((ctrl, rctl, rlpml, rxcsum, rfctl, mrqc), key, reta, vlans, (psrtype, srrctl, first))| {
            // Where RSS differs, so does which queue has none left.
            let has_rss = mrqc & mrqc::ENABLE_RSS != 0;
            let first = if has_rss { ENOUGH } else { first };
            Settings {
                ctrl,
                rctl: rctl | rctl::SECRC,
                rlpml,
                rxcsum,
                rfctl: rfctl | rfctl::LEF,
                mrqc,
                key,
                reta,
                vlans,
                psrtype,
                srrctl,
                // QEMU's holds frames back while no queue has any.
                buffers: [first, ENOUGH, ENOUGH, ENOUGH],
            }
        },
    )
}

#[test]
fn frames_are_received_as_by_qemus_nic() {
    let frames = prop::collection::vec(prop_oneof![3 => frames(1514), 1 => frames(9000)], 1..8);
    check(
        128,
        &(settings(), frames),
        |ours, igb, (settings, frames)| {
            ok(set_up(ours, &settings))?;
            ok(set_up(igb, &settings))?;
            let mut heads = [[0; place::QUEUES as usize]; 2];
            for Hex(frame) in &frames {
                let mut mine = ok(receive(ours, frame, &mut heads[0]))?;
                let mut theirs = ok(receive(igb, frame, &mut heads[1]))?;
                known::received(&settings, frame, &mut mine, &mut theirs);
                prop_assert_eq!(&mine, &theirs, "of {:?}", Hex(frame));
            }
            Ok(())
        },
    );
}
