// SPDX-License-Identifier: MIT OR Apache-2.0

//! Frames of any bytes, and what a driver asks the device to do with them.

use i82576::{
    contexts::Contexts,
    frame,
    limits::{MAX_PAYLEN, MAX_TSO_HEADER, MAX_TX_FRAGMENT},
    offload::{Headers, Offload, Pieces, Segmentation},
    tx::{Context, Data, IpVersion, L4},
    udp_probe,
};

use crate::input::Input;

/// Parses a frame, and makes descriptors of one.
pub fn frames(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    parse(bytes);
    let mut tagged = bytes.to_vec();
    if let Some(kind) = tagged.get_mut(12..14) {
        kind.copy_from_slice(&input.of(&[[0x81, 0], [0x88, 0xa8], [8, 0], [0x86, 0xdd]]));
        parse(&tagged);
    }
    offload(&mut input);
    pieces(&mut input);
    contexts(&mut input);
}

fn parse(frame: &[u8]) {
    if let Some(len) = frame::unpadded_len(frame) {
        // Up to two tags, and a length of 16 bits.
        assert!((14..=22 + 40 + 0xffff).contains(&len), "{len}");
        assert!(frame.len() > 14);
    }
    if let Some(start) = frame.first_chunk() {
        let len = frame.len() as u32;
        assert!(!udp_probe::is_segment(start, len) || start[16..18] == [0, 92]);
    }
}

fn headers(input: &mut Input<'_>) -> Headers {
    let wild = input.any::<u8>() == 0;
    let mut len = |most: u32| match wild {
        true => input.any(),
        false => input.within(0..=most),
    };
    let (network, ip, l4_len) = (len(130), len(520), len(258));
    Headers {
        network,
        transport: network.wrapping_add(ip),
        l4_len,
        ip: input.of(&[IpVersion::V4, IpVersion::V6]),
        l4: input.of(&[L4::Tcp, L4::Udp, L4::Sctp]),
    }
}

fn offload(input: &mut Input<'_>) {
    let headers = headers(input);
    let segmentation = input.any::<bool>().then(|| Segmentation {
        mss: input.any(),
        segments: input.any(),
    });
    let Some(mut offload) = Offload::new(&headers, segmentation) else {
        return;
    };
    if input.any() {
        let (tag, mac_len) = (input.any(), input.within(0..=200));
        offload = offload.with_vlan(tag, mac_len).unwrap_or(offload);
    }
    let Some(context) = offload.context() else {
        panic!("checksums need a context");
    };
    // Nothing was cut off.
    assert_eq!(Context::decode(context.encode()).as_ref(), Some(context));
    assert_eq!(u32::from(context.mac_len), headers.network);
    assert_eq!(
        u32::from(context.mac_len) + u32::from(context.ip_len),
        headers.transport
    );
    let len = match input.any::<bool>() {
        true => input.within(0..=2 * MAX_PAYLEN),
        // Either side of the bound, whatever the headers have.
        false => MAX_PAYLEN + input.within(0..=512),
    };
    if let Some(paylen) = offload.paylen(len) {
        assert!(paylen <= MAX_PAYLEN && paylen <= len);
        assert!(!offload.segments() || len - paylen <= MAX_TSO_HEADER.into());
        assert!(offload.wire_len(len) >= len);
        for piece in Pieces::new(input.any(), len).take(3) {
            let data = offload.data(piece, paylen, input.any());
            assert_eq!(Data::decode(data.encode()), Some(data));
        }
    }
}

fn pieces(input: &mut Input<'_>) {
    let (address, len) = (input.any::<u64>(), input.within(0..=16 * MAX_TX_FRAGMENT));
    let (mut next, mut count, mut sum) = (address, 0, 0);
    for piece in Pieces::new(address, len) {
        assert!(piece.len != 0 && u32::from(piece.len) <= MAX_TX_FRAGMENT);
        assert_eq!(piece.address, next);
        next = next.wrapping_add(piece.len.into());
        sum += u32::from(piece.len);
        count += 1;
    }
    assert_eq!((sum, count), (len, Pieces::count(len)));
}

/// The device has the context that each frame names.
fn contexts(input: &mut Input<'_>) {
    let mut known = Contexts::new();
    let mut device = [None; 2];
    for _ in 0..4 {
        let context = Context {
            vlan: input.within(0..=1),
            mac_len: 14,
            mss: input.of(&[0, 1448]),
            queue_index: input.within(0..=1),
            ..Context::default()
        };
        if let Some(raw) = known.set(&context) {
            let Some(told) = Context::decode(raw) else {
                panic!("{raw:x?} is no context");
            };
            device[usize::from(told.queue_index)] = Some(told);
        }
        assert_eq!(device[usize::from(context.queue_index)], Some(context));
    }
}
