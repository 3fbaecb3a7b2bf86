// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers of bfloat16, next to those that are found by their distance.

use engine::descriptor::{NAN_BF16, NAN_F32};

use crate::engine::arithmetic::{round, sum_bf16, sum_f32};

/// The next representable number by its distance, which is exact in binary64. Beyond the largest there is
/// 2^128, in whose place is infinity.
pub(super) fn nearest(number: f32) -> u16 {
    if number.is_nan() {
        return NAN_BF16;
    }
    let value = |bits: u16| {
        let magnitude = match bits & 0x7fff {
            0x7f80 => 2f64.powi(128),
            bits => f64::from(f32::from_bits(u32::from(bits) << 16)),
        };
        magnitude.copysign(number.into())
    };
    if number.is_infinite() {
        return (number.to_bits() >> 16) as u16;
    }
    let below = (number.to_bits() >> 16) as u16;
    let distance = |bits| (value(bits) - f64::from(number)).abs();
    let candidates = [below, below + 1];
    let by = |bits: &u16| (distance(*bits), bits & 1);
    candidates
        .into_iter()
        .min_by(|one, other| by(one).partial_cmp(&by(other)).unwrap())
        .unwrap()
}

#[test]
fn every_bfloat16_is_itself_and_between_two_it_is_the_nearest() {
    for high in 0..=u16::MAX {
        for low in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
            let number = f32::from_bits(u32::from(high) << 16 | low);
            assert_eq!(round(number), nearest(number), "{high:#06x} {low:#06x}");
        }
    }
}

#[test]
fn sums_are_those_of_ieee_754() {
    let f32s = |one: u32, other: u32| {
        let mut to = one.to_le_bytes();
        sum_f32(&mut to, &other.to_le_bytes());
        u32::from_le_bytes(to)
    };
    let (one, infinity, least) = (1f32.to_bits(), f32::INFINITY.to_bits(), 1);
    let minus = |bits: u32| bits | 1 << 31;
    assert_eq!(f32s(one, one), 2f32.to_bits());
    assert_eq!(f32s(least, least), 2);
    assert_eq!(f32s(f32::MAX.to_bits(), f32::MAX.to_bits()), infinity);
    assert_eq!(f32s(infinity, minus(infinity)), NAN_F32);
    assert_eq!(f32s(0xffff_ffff, one), NAN_F32);
    assert_eq!(f32s(minus(0), minus(0)), minus(0));
    assert_eq!(f32s(one, minus(one)), 0);
    // 1 and half of the last place, to even; and of an odd one.
    assert_eq!(f32s(one, 2f32.powi(-24).to_bits()), one);
    assert_eq!(f32s(one + 1, 2f32.powi(-24).to_bits()), one + 2);

    let bf16s = |one: u16, other: u16| {
        let mut to = one.to_le_bytes();
        sum_bf16(&mut to, &other.to_le_bytes());
        u16::from_le_bytes(to)
    };
    assert_eq!(bf16s(0x3f80, 0x3f80), 0x4000);
    assert_eq!(bf16s(0x0001, 0x0001), 0x0002);
    assert_eq!(bf16s(0x7f7f, 0x7f7f), 0x7f80);
    assert_eq!(bf16s(0x7f80, 0xff80), NAN_BF16);
    assert_eq!(bf16s(0x3f80, 0x3b80), 0x3f80);
    assert_eq!(bf16s(0x3f81, 0x3b80), 0x3f82);
}
