// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a driver does that was lied to about a queue's state.

use engine::regs::{CONTROL, CONTROL_ENABLE, STATUS_RUNNING};

use super::Bench;
use crate::{
    engine::What,
    lies::{Kind, Lie, Plan},
};

#[test]
fn a_driver_that_was_told_that_a_queue_rests_is_not_blamed_until_it_has() {
    let lie = |kind| Lie {
        kind,
        after: 0,
        times: 1,
        value: 0,
    };
    let mut bench = Bench::new();
    bench.engine.lie(&Plan {
        lies: vec![lie(Kind::Stuck), lie(Kind::Garbage)],
    });
    bench.set(0, CONTROL, 0);
    bench.elapse();
    bench.now += 1_000_000;
    bench.elapse();
    assert_eq!(bench.status(0), 0);
    // What comes of it comes when it is honest again.
    assert_eq!(bench.engine.lie(&Plan::default()), [1, 1]);
    assert_eq!(bench.status(0), STATUS_RUNNING);
    bench.set(0, CONTROL, CONTROL_ENABLE);
    assert_eq!(bench.violations(), []);
    bench.set(0, CONTROL, 0);
    bench.set(0, CONTROL, CONTROL_ENABLE);
    assert_eq!(bench.violations(), [(What::Early, 0)]);
}
