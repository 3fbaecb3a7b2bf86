// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What a device that segments UDP makes of the datagram, and what one makes that does not.

use i82576::tx::{Context, Data, IpVersion, L4};
use i82576::udp_probe::{descriptors, is_segment, words, SEGMENTS, SIZE, START};

const ADDRESS: u64 = 0x1234_5000;
const IP: usize = 14;
const UDP: usize = 34;
const PAYLOAD: usize = 42;

fn frame() -> Vec<u8> {
    let words = (0..SIZE).flat_map(words);
    words.flat_map(u64::to_le_bytes).collect()
}

fn put(frame: &mut [u8], at: usize, value: usize) {
    let value = u16::try_from(value).expect("it fits");
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn decoded() -> (Context, Data) {
    let [context, data] = descriptors(ADDRESS).expect("the device can");
    let context = Context::decode(context).expect("a context");
    (context, Data::decode(data).expect("a data descriptor"))
}

/// Headers and the payload from `from` on, of `len` bytes, for the device to fix.
fn piece(from: usize, len: usize) -> Vec<u8> {
    let frame = frame();
    [&frame[..PAYLOAD], &frame[PAYLOAD + from..][..len]].concat()
}

/// As silicon does it.
fn datagrams() -> Vec<Vec<u8>> {
    let (context, data) = decoded();
    let (mss, all) = (usize::from(context.mss), data.paylen as usize);
    let datagram = |from: usize| {
        let mut datagram = piece(from, mss.min(all - from));
        let len = datagram.len();
        put(&mut datagram, IP + 2, len - IP);
        put(&mut datagram, UDP + 4, len - UDP);
        datagram
    };
    (0..all).step_by(mss).map(datagram).collect()
}

fn seen(frame: &[u8]) -> bool {
    let start: &[u8; START] = frame.first_chunk().expect("not shorter than the shortest");
    is_segment(start, frame.len() as u32)
}

#[test]
fn the_descriptors_ask_for_segments_of_udp_behind_the_frames_headers() {
    let (context, data) = decoded();
    assert_eq!(
        (context.mac_len, context.ip_len, context.l4_len),
        (14, 20, 8)
    );
    assert_eq!((context.ip, context.l4), (Some(IpVersion::V4), L4::Udp));
    assert!(data.tso && data.ip_checksum && data.l4_checksum);
    assert!(data.end_of_packet && data.report_status);
    assert_eq!(data.address, ADDRESS);
    assert_eq!(u32::from(data.len), data.paylen + PAYLOAD as u32);
    assert_eq!(data.paylen, u32::from(context.mss) * u32::from(SEGMENTS));
    assert!(u32::from(data.len) <= 16 * SIZE);
}

#[test]
fn the_udp_checksum_is_that_of_the_pseudo_header_without_a_length() {
    let frame = frame();
    let words = frame[IP + 12..IP + 20].chunks(2);
    let addresses: u32 = words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let sum = addresses + u32::from(frame[IP + 9]);
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = u16::from_be_bytes([frame[UDP + 6], frame[UDP + 7]]);
    assert_eq!(u32::from(checksum), folded);
}

#[test]
fn a_device_that_makes_a_datagram_of_each_segment_is_told() {
    let datagrams = datagrams();
    assert_eq!(datagrams.len(), usize::from(SEGMENTS));
    assert!(datagrams.iter().all(|datagram| seen(datagram)));
}

#[test]
fn fragments_of_ip_are_no_segments() {
    // As QEMU's model does it: what is cut is UDP's header with all of the payload, by the MSS.
    let (context, data) = decoded();
    let mss = usize::from(context.mss);
    let whole = frame();
    let datagram = &whole[UDP..PAYLOAD + data.paylen as usize];
    for (n, part) in datagram.chunks(mss).enumerate() {
        let mut fragment = [&whole[..UDP], part].concat();
        let len = fragment.len();
        put(&mut fragment, IP + 2, len - IP);
        let more = usize::from((n + 1) * mss < datagram.len());
        put(&mut fragment, IP + 6, (more << 13) | (n * mss / 8));
        fragment.resize(fragment.len().max(60), 0);
        assert!(!seen(&fragment), "fragment {n}");
    }
}

#[test]
fn a_frame_is_no_segment_with_one_field_that_is_wrong() {
    let datagrams = datagrams();
    for (at, value) in [(IP + 2, 93), (IP + 6, 0x2000), (IP + 6, 8), (UDP + 4, 136)] {
        let mut wrong = datagrams[0].clone();
        put(&mut wrong, at, value);
        assert!(!seen(&wrong), "{value} at {at}");
    }
    let mut kept_whole = datagrams[0].clone();
    put(&mut kept_whole, IP + 6, 0x4000);
    assert!(seen(&kept_whole), "not to be fragmented");
    kept_whole.push(0);
    assert!(!seen(&kept_whole), "a byte too many");
}

#[test]
fn a_frame_that_was_not_segmented_is_none() {
    let (_, data) = decoded();
    assert!(!seen(&frame()[..usize::from(data.len)]));
}
