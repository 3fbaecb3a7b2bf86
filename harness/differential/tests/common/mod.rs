// SPDX-License-Identifier: MIT OR Apache-2.0

//! Both NICs, and cases for them that are the same in each run.

#![allow(dead_code, reason = "no test uses all of it")]

pub(crate) mod frames;

use std::{cell::RefCell, env, fmt};

use differential::{Igb, Ours};
use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use vm::Images;

/// What says which cases there are, a number: another than zero to look for more.
const SEED: &str = "DIFFERENTIAL_SEED";

/// Runs a property on both NICs, with one QEMU for all cases. A failure says which seed it was.
pub(crate) fn check<S: Strategy<Value: fmt::Debug>>(
    cases: u32,
    strategy: &S,
    property: impl Fn(&mut Ours, &mut Igb, S::Value) -> Result<(), TestCaseError>,
) {
    let seed: u64 = env::var(SEED).map_or(0, |text| text.parse().expect("a number"));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 400,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let images = Images::from_env().expect("a QEMU to compare with");
    let igb = Igb::start(&images.qemu).unwrap();
    let both = RefCell::new((Ours::new(), igb));
    let done = runner.run(strategy, |value| {
        let (ours, igb) = &mut *both.borrow_mut();
        property(ours, igb, value)
    });
    if let Err(error) = done {
        panic!("with {SEED}={seed}: {error}");
    }
}

/// A harness's error ends a case.
pub(crate) fn ok<T>(result: differential::Result<T>) -> Result<T, TestCaseError> {
    result.map_err(|error| TestCaseError::fail(error.to_string()))
}
