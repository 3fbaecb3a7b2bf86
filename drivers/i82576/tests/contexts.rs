// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A queue's contexts: what the device has is what each frame needs, whatever is left out.

use i82576::contexts::Contexts;
use i82576::offload::{Headers, Offload, Segmentation};
use i82576::tx::{Context, IpVersion, L4};
use proptest::prelude::*;

fn headers(ip: IpVersion, l4_len: u32) -> Headers {
    let ip_len = if ip == IpVersion::V4 { 20 } else { 40 };
    Headers {
        network: 14,
        transport: 14 + ip_len,
        l4_len,
        ip,
        l4: L4::Tcp,
    }
}

/// Few enough that frames often need the same.
fn offload() -> impl Strategy<Value = Offload> {
    let ip = prop_oneof![Just(IpVersion::V4), Just(IpVersion::V6)];
    let segmentation = prop::option::of(
        prop_oneof![Just(1448), Just(8948)].prop_map(|mss| Segmentation { mss, segments: 2 }),
    );
    (
        ip,
        prop_oneof![Just(20), Just(32)],
        segmentation,
        prop::option::of(1..3u16),
    )
        .prop_map(|(ip, l4_len, segmentation, vlan)| {
            let offload = Offload::new(&headers(ip, l4_len), segmentation);
            let offload = match vlan {
                Some(tag) => offload.and_then(|offload| offload.with_vlan(tag, 14)),
                None => offload,
            };
            offload.expect("the device can")
        })
}

/// What happens to a ring.
#[derive(Debug, Clone)]
enum Step {
    Frame(Offload),
    /// The queue is disabled and enabled again, or descriptors are taken back.
    Lost,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![9 => offload().prop_map(Step::Frame), 1 => Just(Step::Lost)]
}

fn needed(offload: &Offload) -> &Context {
    offload.context().expect("an offload has one")
}

#[test]
fn a_stream_and_its_acknowledgements_send_each_context_once() {
    let ip = headers(IpVersion::V4, 32);
    let segments = Segmentation {
        mss: 1448,
        segments: 44,
    };
    let data = Offload::new(&ip, Some(segments)).expect("the device can");
    let acknowledgement = Offload::new(&ip, None).expect("the device can");
    let mut contexts = Contexts::new();

    let sent = [&data, &acknowledgement].repeat(100).into_iter();
    let sent = sent.filter(|offload| contexts.set(needed(offload)).is_some());
    assert_eq!(sent.count(), 2);
}

proptest! {
    #[test]
    fn the_context_that_a_frame_uses_is_the_one_it_needs(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut contexts = Contexts::new();
        let mut device = [None; 2];

        for step in steps {
            let offload = match step {
                Step::Frame(offload) => offload,
                Step::Lost => {
                    contexts = Contexts::new();
                    device = [None; 2];
                    continue;
                }
            };
            if let Some(raw) = contexts.set(needed(&offload)) {
                let context = Context::decode(raw).expect("a context descriptor");
                device[usize::from(context.queue_index)] = Some(context);
            }
            let piece = i82576::offload::Piece { address: 0, len: 60 };
            let used = offload.data(piece, 60, true).queue_index;
            prop_assert_eq!(device[usize::from(used)].as_ref(), Some(needed(&offload)));
        }
    }
}
