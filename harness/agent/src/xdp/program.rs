// SPDX-License-Identifier: MIT OR Apache-2.0

//! The code of programs.

use std::os::fd::OwnedFd;

use protocol::{XdpAction, XdpProgram};

use super::assembler::{
    Assembler, Exit, Instruction,
    Register::{R0, R1, R2, R3, R4, R6, R7, R8, R10},
    Size::{Double, Half, Word},
};

/// Bytes of an Ethernet header, and the offset of the type in it.
const ETHERNET: i32 = 14;
const TYPE: i16 = 12;

// From `enum bpf_func_id`.
const MAP_LOOKUP_ELEM: i32 = 1;
const XDP_ADJUST_HEAD: i32 = 44;
const REDIRECT_MAP: i32 = 51;
const XDP_ADJUST_TAIL: i32 = 65;

/// Loads where the frame begins and ends (`struct xdp_md`) to R7 and R8.
fn load_frame(program: &mut Assembler) {
    program.load(Word, R7, R6, 0).load(Word, R8, R6, 4);
}

/// The instructions of a program that counts in `counter`, and redirects through `target`.
pub(super) fn assemble(
    spec: &XdpProgram,
    counter: &OwnedFd,
    target: Option<&OwnedFd>,
) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.copy(R6, R1);
    load_frame(&mut program);
    program
        .copy(R2, R7)
        .add(R2, ETHERNET)
        .end_if_above(R2, R8, Exit::Pass);
    if let Some(ethertype) = spec.ethertype {
        program
            .load(Half, R3, R7, TYPE)
            .end_if_not(R3, ethertype.to_be().into(), Exit::Pass);
    }
    // Count the frame.
    program
        .set(R1, 0)
        .store(Word, R10, -4, R1)
        .copy(R2, R10)
        .add(R2, -4)
        .map(R1, counter)
        .call(MAP_LOOKUP_ELEM)
        .end_if_equal(R0, 0, Exit::Aborted)
        .set(R1, 1)
        .count(R0, R1);

    match &spec.action {
        XdpAction::Pass => program.end(Exit::Pass),
        XdpAction::Drop => program.end(Exit::Drop),
        XdpAction::Abort => program.end(Exit::Aborted),
        XdpAction::Unknown => program.end(Exit::Unknown),
        XdpAction::Transmit => {
            program
                .load(Word, R1, R7, 0)
                .load(Half, R2, R7, 4)
                .load(Word, R3, R7, 6)
                .load(Half, R4, R7, 10)
                .store(Word, R7, 0, R3)
                .store(Half, R7, 4, R4)
                .store(Word, R7, 6, R1)
                .store(Half, R7, 10, R2)
                .end(Exit::Transmit);
        }
        XdpAction::Redirect { .. } => redirect(&mut program, target, 0),
        XdpAction::RedirectToCpu(key) | XdpAction::RedirectToSocket(key) => {
            redirect(&mut program, target, *key);
        }
        XdpAction::MoveHead(bytes) => move_head(&mut program, *bytes),
        XdpAction::MoveTail(bytes) => {
            program
                .copy(R1, R6)
                .set(R2, *bytes)
                .call(XDP_ADJUST_TAIL)
                .end_if_not(R0, 0, Exit::Aborted)
                .end(Exit::Pass);
        }
    }
    program.finish()
}

fn redirect(program: &mut Assembler, target: Option<&OwnedFd>, key: u32) {
    if let Some(target) = target {
        program
            .map(R1, target)
            .set(R2, key as i32)
            .set(R3, 0)
            .call(REDIRECT_MAP)
            .exit();
    }
}

fn move_head(program: &mut Assembler, bytes: i32) {
    program
        .copy(R1, R6)
        .set(R2, bytes)
        .call(XDP_ADJUST_HEAD)
        .end_if_not(R0, 0, Exit::Aborted);
    if bytes < 0 {
        // The Ethernet header is where the frame began, behind the added bytes.
        let old = bytes.unsigned_abs() as i16;
        load_frame(program);
        program
            .copy(R2, R7)
            .add(R2, i32::from(old) + ETHERNET)
            .end_if_above(R2, R8, Exit::Aborted);
        for (size, offset) in [(Double, 0), (Word, 8), (Half, TYPE)] {
            program
                .load(size, R1, R7, old + offset)
                .store(size, R7, offset, R1);
        }
    }
    program.end(Exit::Pass);
}
