// SPDX-License-Identifier: MIT OR Apache-2.0

//! eBPF instructions (Documentation/bpf/standardization/instruction-set.rst), and jumps to labels.

use std::os::fd::{AsRawFd, OwnedFd};

/// An instruction in the kernel's encoding (`struct bpf_insn`).
pub(super) type Instruction = u64;

/// A register. R0 is the return value, R1 to R5 are arguments and clobbered by calls, R10 is the
/// frame pointer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Register {
    R0 = 0,
    R1 = 1,
    R2 = 2,
    R3 = 3,
    R4 = 4,
    R6 = 6,
    R7 = 7,
    R8 = 8,
    R10 = 10,
}

/// The size of a memory access, as encoded in the opcode.
#[derive(Debug, Clone, Copy)]
pub(super) enum Size {
    /// 4 bytes.
    Word = 0x00,
    /// 2 bytes.
    Half = 0x08,
    /// 8 bytes.
    Double = 0x18,
}

/// An exit of a program, and a jump target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// `XDP_ABORTED`.
    Aborted = 0,
    /// `XDP_DROP`.
    Drop = 1,
    /// `XDP_PASS`.
    Pass = 2,
    /// `XDP_TX`.
    Transmit = 3,
    /// No action at all.
    Unknown = 99,
}

impl Exit {
    const ALL: [Self; 5] = [
        Self::Aborted,
        Self::Drop,
        Self::Pass,
        Self::Transmit,
        Self::Unknown,
    ];
}

const EXIT: u8 = 0x95;

fn encode(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    u64::from(code)
        | u64::from(to) << 8
        | u64::from(from) << 12
        | u64::from(offset as u16) << 16
        | u64::from(immediate as u32) << 32
}

/// A program under construction.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    instructions: Vec<Instruction>,
    /// Jumps, and their targets.
    jumps: Vec<(usize, Exit)>,
}

impl Assembler {
    fn push(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) -> &mut Self {
        let instruction = encode(code, to as u8, from, offset, immediate);
        self.instructions.push(instruction);
        self
    }

    /// `to = from`
    pub(super) fn copy(&mut self, to: Register, from: Register) -> &mut Self {
        self.push(0xbf, to, from as u8, 0, 0)
    }

    /// `to = value`
    pub(super) fn set(&mut self, to: Register, value: i32) -> &mut Self {
        self.push(0xb7, to, 0, 0, value)
    }

    /// `to += value`
    pub(super) fn add(&mut self, to: Register, value: i32) -> &mut Self {
        self.push(0x07, to, 0, 0, value)
    }

    /// `to = *(from + offset)`
    pub(super) fn load(
        &mut self,
        size: Size,
        to: Register,
        from: Register,
        offset: i16,
    ) -> &mut Self {
        self.push(0x61 | size as u8, to, from as u8, offset, 0)
    }

    /// `*(to + offset) = from`
    pub(super) fn store(
        &mut self,
        size: Size,
        to: Register,
        offset: i16,
        from: Register,
    ) -> &mut Self {
        self.push(0x63 | size as u8, to, from as u8, offset, 0)
    }

    /// `*to += from`, 8 bytes, atomically.
    pub(super) fn count(&mut self, to: Register, from: Register) -> &mut Self {
        self.push(0xdb, to, from as u8, 0, 0)
    }

    /// `to` = a map.
    pub(super) fn map(&mut self, to: Register, map: &OwnedFd) -> &mut Self {
        const MAP_FD: u8 = 1;

        self.push(0x18, to, MAP_FD, 0, map.as_raw_fd());
        self.instructions.push(0);
        self
    }

    /// Calls a helper function (`enum bpf_func_id`).
    pub(super) fn call(&mut self, function: i32) -> &mut Self {
        self.push(0x85, Register::R0, 0, 0, function)
    }

    fn jump(&mut self, end: Exit) -> &mut Self {
        self.jumps.push((self.instructions.len() - 1, end));
        self
    }

    /// Ends if `a > b`.
    pub(super) fn end_if_above(&mut self, a: Register, b: Register, end: Exit) -> &mut Self {
        self.push(0x2d, a, b as u8, 0, 0).jump(end)
    }

    /// Ends if `register == value`.
    pub(super) fn end_if_equal(&mut self, register: Register, value: i32, end: Exit) -> &mut Self {
        self.push(0x15, register, 0, 0, value).jump(end)
    }

    /// Ends if `register != value`.
    pub(super) fn end_if_not(&mut self, register: Register, value: i32, end: Exit) -> &mut Self {
        self.push(0x55, register, 0, 0, value).jump(end)
    }

    /// Ends unconditionally.
    pub(super) fn end(&mut self, end: Exit) {
        self.push(0x05, Register::R0, 0, 0, 0).jump(end);
    }

    /// Ends with what is in R0.
    pub(super) fn exit(&mut self) {
        self.instructions.push(EXIT.into());
    }

    /// The program, followed by the exits that its jumps target.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for end in Exit::ALL {
            let to = self.instructions.len();
            let mut jumps = self
                .jumps
                .iter()
                .filter(|(_, jump)| *jump == end)
                .peekable();
            // The verifier rejects unreachable instructions.
            if jumps.peek().is_none() {
                continue;
            }
            for (from, _) in jumps {
                let distance = (to - from - 1) as u16;
                self.instructions[*from] |= u64::from(distance) << 16;
            }
            self.set(Register::R0, end as i32).exit();
        }
        self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_go_to_ends_behind_the_program() {
        let mut program = Assembler::default();
        program.end_if_equal(Register::R1, 7, Exit::Drop);
        program.end(Exit::Pass);
        assert_eq!(
            program.finish(),
            [
                // if r1 == 7 goto +1; goto +2; r0 = 1; exit; r0 = 2; exit
                0x0000_0007_0001_0115,
                0x0000_0000_0002_0005,
                0x0000_0001_0000_00b7,
                0x0000_0000_0000_0095,
                0x0000_0002_0000_00b7,
                0x0000_0000_0000_0095,
            ]
        );
    }

    #[test]
    fn memory_is_loaded_and_stored_in_the_sizes_of_the_instruction_set() {
        let mut program = Assembler::default();
        program
            .load(Size::Word, Register::R7, Register::R6, 4)
            .load(Size::Half, Register::R3, Register::R7, 12)
            .store(Size::Double, Register::R7, -8, Register::R1)
            .exit();
        assert_eq!(
            program.finish(),
            [
                0x0000_0000_0004_6761,
                0x0000_0000_000c_7369,
                0x0000_0000_fff8_177b,
                0x95
            ]
        );
    }
}
