// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pause frames, received and sent.

use super::*;

#[test]
fn a_pause_frame_holds_frames_back_for_its_time() {
    let port = &mut Port::new();
    port.write(regs::FCAL, regs::fc::ADDRESS_LOW);
    port.write(regs::FCAH, regs::fc::ADDRESS_HIGH);
    port.write(regs::FCT, regs::fc::ETHERTYPE);
    port.write(regs::CTRL, ctrl::SLU | ctrl::RFCE);
    let mut frame = vec![
        1, 0x80, 0xc2, 0, 0, 1, 2, 2, 2, 2, 2, 2, 0x88, 8, 0, 1, 0, 100,
    ];
    frame.resize(60, 0);
    port.nic.receive(&frame, &mut port.host);
    assert_ne!(port.read(regs::STATUS) & status::TXOFF, 0);
    port.send(&segment(b"held back"), Data::default());
    port.later(100 * 512 - 1);
    assert!(port.host.frames.is_empty());
    port.later(1);
    assert_eq!(port.host.frames.len(), 1);
    assert_eq!(port.read(regs::XOFFRXC), 1);
}

/// What pause frames ask for, of the frames that have left.
fn pauses(port: &mut Port) -> Vec<u16> {
    let frames = port.host.frames.drain(..);
    let pause = |frame: Vec<u8>| {
        assert_eq!(frame.len(), 60);
        assert_eq!(frame[..6], [1, 0x80, 0xc2, 0, 0, 1]);
        assert_eq!(frame[12..16], [0x88, 8, 0, 1]);
        u16::from_be_bytes([frame[16], frame[17]])
    };
    frames.map(pause).collect()
}

#[test]
fn the_other_side_is_asked_for_silence_while_the_packet_buffer_is_nearly_full() {
    let port = &mut Port::new();
    let (low, high) = (3 * 1024, 8 * 1024);
    let split = srrctl::DescType::HeaderSplit;
    for (reg, value) in [
        // Frames wait for a descriptor.
        (regs::srrctl(1), srrctl::encode(4, 4, split, false)),
        (regs::FCT, regs::fc::ETHERTYPE),
        (regs::FCTTV, 100),
        (regs::FCRTV, 40),
        (regs::FCRTL, low | regs::fc::XONE),
        (regs::FCRTH, high),
        (regs::CTRL, ctrl::SLU | ctrl::TFCE),
    ] {
        port.write(reg, value);
    }
    let frame = segment(&[7; 1000]);
    let until_high = high as usize / frame.len();
    for _ in 0..until_high {
        port.nic.receive(&frame, &mut port.host);
    }
    assert_eq!(pauses(port), []);
    port.nic.receive(&frame, &mut port.host);
    assert_eq!(pauses(port), [100]);
    // What is on its way yet does not make it ask again, the time that runs out does.
    port.nic.receive(&frame, &mut port.host);
    port.later(60 * 512 - 1);
    assert_eq!(pauses(port), []);
    port.later(1);
    assert_eq!(pauses(port), [100]);
    port.post(16);
    assert_eq!(pauses(port), [0]);
    port.later(1 << 30);
    assert_eq!(pauses(port), []);
    let counted = [regs::XOFFTXC, regs::XONTXC].map(|reg| port.read(reg));
    assert_eq!(counted, [2, 1]);
}

#[test]
fn a_pause_without_time_to_ask_again_is_asked_for_once() {
    for (time, threshold) in [(0, 0), (40, 40)] {
        let port = &mut Port::new();
        let split = srrctl::DescType::HeaderSplit;
        for (reg, value) in [
            (regs::srrctl(1), srrctl::encode(4, 4, split, false)),
            (regs::FCT, regs::fc::ETHERTYPE),
            (regs::FCTTV, time),
            (regs::FCRTV, threshold),
            (regs::CTRL, ctrl::SLU | ctrl::TFCE),
        ] {
            port.write(reg, value);
        }
        port.nic.receive(&segment(&[7; 1000]), &mut port.host);
        let next = port.nic.elapse(port.now, &mut port.host);
        assert!(next.is_none_or(|next| next > port.now), "{next:?}");
        assert_eq!(pauses(port), [time as u16]);
    }
}
