// SPDX-License-Identifier: MIT OR Apache-2.0

//! An engine that lies: its driver and its users come through, and once it is honest again, all works, if need
//! be after the driver was bound anew.

use std::iter;

use cases::{
    Result,
    hostile::{Device, Outcome, Target, campaign, corpus},
};
use model::lies::{Kind, Lie, Plan};

/// After how many occasions a lie is told, and how often.
const OFTEN: [(u32, u32); 3] = [(0, 1), (3, 2), (1, u32::MAX)];
/// Plans of several lies.
const PLANS: u64 = 40;

/// Plans of one kind.
fn plans(kind: Kind) -> impl Iterator<Item = Plan> {
    OFTEN.into_iter().map(move |(after, times)| {
        let lie = Lie {
            after,
            times,
            ..Lie::once(kind, 0x0123_4567_89ab_cdef)
        };
        Plan { lies: vec![lie] }
    })
}

#[test]
fn each_lie_of_an_engine_is_survived() -> Result {
    let victim = Target::of_case(Device::Engine).boot("hostile-engine")?;
    for kind in Kind::OF_ENGINE {
        let mut count = 0;
        for plan in plans(kind) {
            let attacked = victim.attack(&plan);
            let (outcome, told) = attacked.unwrap_or_else(|trouble| panic!("{plan:?}: {trouble}"));
            count += told.iter().sum::<u32>();
            // Only an engine that keeps what it was given takes more than time.
            let may_be_lost = matches!(
                kind,
                Kind::Stuck | Kind::Ones | Kind::Garbage | Kind::LostWrite
            );
            assert!(
                outcome != Outcome::Detached || may_be_lost,
                "{plan:?} took the driver to be bound anew"
            );
        }
        assert_ne!(count, 0, "{kind} was never told");
    }
    victim
        .rest()
        .unwrap_or_else(|trouble| panic!("at the end: {trouble}"));
    Ok(())
}

#[test]
fn a_queue_of_which_every_other_read_is_of_ones_is_not_taken_for_gone() -> Result {
    // The driver stops two queues, and gives up on each after 5,000 reads. Half-way through the second one's, ones move
    // from the even reads to the odd ones, so that the last read is of ones for one of the two queues.
    const MIDDLE: u32 = 7_500;
    const READS: u32 = 20_000;
    let even = (0..MIDDLE).step_by(2);
    let odd = (MIDDLE + 1..READS).step_by(2);
    let victim = Target::of_case(Device::Engine).boot("hostile-engine-ones")?;
    let stuck = Lie {
        times: u32::MAX,
        ..Lie::once(Kind::Stuck, 0)
    };
    let ones = even.chain(odd).map(|after| Lie {
        after,
        ..Lie::once(Kind::Ones, 0)
    });
    let lies = iter::once(stuck).chain(ones).collect();
    let (_, told) = victim
        .attack(&Plan { lies })
        .unwrap_or_else(|trouble| panic!("{trouble}"));
    let told: u32 = told[1..].iter().sum();
    assert!(
        told > MIDDLE / 2,
        "it was stopped after {told} reads of ones"
    );
    victim
        .rest()
        .unwrap_or_else(|trouble| panic!("at the end: {trouble}"));
    Ok(())
}

/// Carries out the plans of these seeds.
fn survives_plans(seeds: Vec<u64>) {
    let tally = campaign(Target::of_case(Device::Engine), 1, seeds, |_| ());
    assert!(
        tally.is_whole() && tally.harms() == 0 && tally.lies != 0,
        "{tally:#?}"
    );
}

#[test]
fn plans_of_several_lies_of_an_engine_are_survived() {
    survives_plans((0..PLANS).collect());
}

#[test]
fn plans_of_an_engine_that_once_did_harm_do_none() {
    survives_plans(corpus(Device::Engine));
}
