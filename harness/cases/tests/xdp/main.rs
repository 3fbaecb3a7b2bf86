// SPDX-License-Identifier: MIT OR Apache-2.0

//! XDP programs: what they do with frames, how they come and go, and what rules them out.

mod actions;
mod changes;
mod exclusions;
mod fragments;
mod redirect;
mod xsk;

use cases::{EXPERIMENTAL, Family, Result, Station, Testbed, ethernet};
use protocol::{
    XdpAction, XdpProgram,
    xdp::{AttachXdp, DetachXdp, XdpRuns},
};

const MIB: u64 = 1 << 20;

/// EtherType of frames that programs handle.
const OURS: u16 = EXPERIMENTAL[0];
/// EtherType of other frames.
const OTHER: u16 = EXPERIMENTAL[1];

/// A program for frames of our type.
fn program(action: XdpAction) -> XdpProgram {
    XdpProgram {
        ethertype: Some(OURS),
        action,
        fragments: false,
    }
}

/// A program for all frames.
fn for_all(action: XdpAction) -> XdpProgram {
    XdpProgram {
        ethertype: None,
        ..program(action)
    }
}

/// A program that can deal with frames in fragments.
fn with_fragments(program: XdpProgram) -> XdpProgram {
    XdpProgram {
        fragments: true,
        ..program
    }
}

fn attach(bed: &Testbed, program: XdpProgram) -> std::result::Result<(), vm::Error> {
    bed.guest.call(AttachXdp::on(bed.local, program))
}

fn detach(bed: &Testbed) -> Result {
    Ok(bed.guest.call(DetachXdp::on(bed.local))?)
}

fn runs(bed: &Testbed) -> Result<u64> {
    Ok(bed.guest.call(XdpRuns::on(bed.local))?)
}

/// Waits until the program has run, while there is traffic for it.
fn runs_again(bed: &Testbed) -> Result {
    let before = runs(bed)?;
    bed.wait_until(before + 1, || runs(bed))?;
    Ok(())
}

/// Bytes that differ from frame to frame.
fn payload(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| ((at * 7 + seed * 13) % 251) as u8)
        .collect()
}

/// A frame from the peer to the NIC under test, with `length` bytes of payload.
fn frame(bed: &Testbed, ethertype: u16, seed: usize, length: usize) -> Vec<u8> {
    let mut frame = ethernet(bed.peer.mac(), bed.local.mac(), ethertype);
    frame.extend(payload(seed, length));
    frame
}

/// Payload lengths, from the shortest frame to the longest for an MTU.
fn lengths(mtu: u32) -> Vec<usize> {
    let mtu = mtu as usize;
    vec![46, 47, 64, 500, 1000, mtu / 2, mtu - 1, mtu]
}

fn frames(bed: &Testbed, mtu: u32) -> Vec<Vec<u8>> {
    let lengths = lengths(mtu).into_iter().enumerate();
    lengths
        .map(|(seed, length)| frame(bed, OURS, seed, length))
        .collect()
}

/// Has the peer send frames; returns as many of a type that arrived at a station.
fn exchange(
    bed: &Testbed,
    frames: Vec<Vec<u8>>,
    to: Station,
    ethertype: u16,
) -> Result<Vec<Vec<u8>>> {
    let count = frames.len();
    bed.exchange(frames, to, ethertype, count)
}

fn ping(bed: &Testbed, size: u32) -> Result {
    bed.ping(bed.peer, bed.local, Family::V4, 2, size)
}
