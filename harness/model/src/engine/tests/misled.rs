// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a driver does that was lied to about a queue's state, and completions that are not where or when they should
//! be.

use engine::{
    descriptor::{Descriptor, Status},
    regs::{CONTROL, CONTROL_ENABLE, STATUS_RUNNING},
};

use super::{
    Bench,
    queues::{LONG, long},
};
use crate::{
    engine::What,
    lies::{Kind, Lie, Plan},
};

#[test]
fn a_driver_that_was_told_that_a_queue_rests_is_not_blamed_until_it_has() {
    let mut bench = Bench::new();
    bench.engine.lie(&Plan {
        lies: vec![Lie::once(Kind::Stuck, 0), Lie::once(Kind::Garbage, 0)],
    });
    bench.set(0, CONTROL, 0);
    bench.elapse();
    bench.now += 1_000_000;
    bench.elapse();
    assert_eq!(bench.status(0), 0);
    // What comes of it comes when it is honest again.
    assert_eq!(bench.engine.lie(&Plan::default()), [1, 1]);
    assert!(!bench.engine.queues[0].rests());
    bench.set(0, CONTROL, CONTROL_ENABLE);
    assert_eq!(bench.violations(), []);
    bench.set(0, CONTROL, 0);
    bench.set(0, CONTROL, CONTROL_ENABLE);
    assert_eq!(bench.violations(), [(What::Early, 0)]);
}

#[test]
fn a_driver_that_takes_a_queue_for_gone_after_one_read_of_ones_is_blamed() {
    let ones = |after, times| Lie {
        after,
        times,
        ..Lie::once(Kind::Ones, 0)
    };
    // What is blamed after so many reads in a row, and none after that.
    for (reads, blamed) in [(1, vec![(What::Early, 0)]), (2, vec![])] {
        let mut bench = Bench::new();
        bench.engine.lie(&Plan {
            lies: vec![Lie::once(Kind::Stuck, 0), ones(2, reads), ones(0, 1)],
        });
        bench.set(0, CONTROL, 0);
        bench.now += 1_000_000;
        bench.elapse();
        // Ones before it was said to be there don't count.
        assert_eq!(
            [(); 2].map(|()| bench.status(0)),
            [u32::MAX, STATUS_RUNNING]
        );
        for _ in 0..reads {
            assert_eq!(bench.status(0), u32::MAX);
        }
        bench.set(0, CONTROL, CONTROL_ENABLE);
        assert_eq!(bench.violations(), blamed);
    }
}

/// An engine that tells one lie, once.
fn liar(kind: Kind, value: u64) -> Bench {
    let mut bench = Bench::new();
    bench.engine.lie(&Plan {
        lies: vec![Lie::once(kind, value)],
    });
    bench
}

/// Which descriptors of the first queue's ring are completed.
fn completed(bench: &mut Bench) -> [bool; 4] {
    [0, 1, 2, 3].map(|index| bench.completion_at(0, index).is_some())
}

#[test]
fn a_late_completion_comes_after_the_next_one() {
    let mut bench = liar(Kind::Late, 0);
    bench.execute(&Descriptor::default(), &[]);
    assert_eq!(bench.head(0), 1);
    assert_eq!(completed(&mut bench), [false; 4]);
    bench.execute(&Descriptor::default(), &[]);
    assert_eq!(completed(&mut bench), [true, true, false, false]);
}

#[test]
fn a_premature_completion_comes_before_the_work_and_once_more_after_it() {
    let mut bench = liar(Kind::Premature, 0);
    let (fill, fragments) = long();
    bench.put(0, &fill, &fragments);
    bench.ring(0);
    bench.elapse();
    let said = bench.completion(0).expect("it is completed");
    assert_eq!(
        (said.status, said.bytes, bench.head(0)),
        (Status::Done, 0, 0)
    );
    bench.run();
    let said = bench.completion(0).expect("it is completed");
    assert_eq!((said.bytes, bench.head(0)), (u64::from(LONG), 1));
}

#[test]
fn a_repeated_completion_is_of_any_descriptor_of_the_ring() {
    let mut bench = liar(Kind::Repeated, 3);
    bench.execute(&Descriptor::default(), &[]);
    assert_eq!(completed(&mut bench), [true, true, false, false]);
}
