// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is done to bytes. Rust leaves open which NaN a sum is; here there is one.

use engine::descriptor::{NAN_BF16, NAN_F32};

/// Fills with a value, the lowest byte first.
pub(super) fn fill(bytes: &mut [u8], value: u32) {
    for chunk in bytes.chunks_mut(4) {
        chunk.copy_from_slice(&value.to_le_bytes()[..chunk.len()]);
    }
}

/// How many bytes are the same, up to the first difference.
pub(super) fn same(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Adds numbers of binary32.
pub(super) fn sum_f32(to: &mut [u8], from: &[u8]) {
    each(to, from, |one, other| {
        let sum = f32::from_le_bytes(one) + f32::from_le_bytes(other);
        let bits = if sum.is_nan() { NAN_F32 } else { sum.to_bits() };
        bits.to_le_bytes()
    });
}

/// Adds numbers of bfloat16.
pub(super) fn sum_bf16(to: &mut [u8], from: &[u8]) {
    let wide = |bytes| f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16);
    each(to, from, |one, other| {
        round(wide(one) + wide(other)).to_le_bytes()
    });
}

/// Rounds to bfloat16, to the nearest, to even in the middle.
pub(super) fn round(number: f32) -> u16 {
    if number.is_nan() {
        return NAN_BF16;
    }
    let bits = number.to_bits();
    let odd = bits >> 16 & 1;
    // No overflow: the largest is an infinity. A carry into the exponent is right.
    ((bits + 0x7fff + odd) >> 16) as u16
}

fn each<const N: usize>(to: &mut [u8], from: &[u8], sum: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    for (to, from) in to.chunks_exact_mut(N).zip(from.chunks_exact(N)) {
        let (mut one, mut other) = ([0; N], [0; N]);
        one.copy_from_slice(to);
        other.copy_from_slice(from);
        to.copy_from_slice(&sum(one, other));
    }
}
