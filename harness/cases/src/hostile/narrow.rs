// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which plans, and which of their lies, it takes to do a harm.

use model::lies::Plan;

use super::{
    outcome::{Harm, Trouble},
    tally::Failure,
    victim::Target,
};

/// After the plans `before`, the one of this seed did harm: whether it does alone, and by which lies.
pub(super) fn of_plan(target: Target<'_>, before: &[u64], seed: u64, harm: &Harm) -> Failure {
    match repeats(target, &[target.device.plan(seed)], harm) {
        true => of_seeds(target, &[seed], harm),
        false => Failure {
            seeds: [before, &[seed]].concat(),
            harm: harm.to_string(),
            plan: None,
        },
    }
}

/// At the end of a guest with plans of these seeds there was harm: halves them as long as one half
/// does the same.
pub(super) fn of_guest(target: Target<'_>, seeds: &[u64], harm: &Harm) -> Failure {
    let mut seeds = seeds;
    while seeds.len() > 1 {
        let (one, other) = seeds.split_at(seeds.len() / 2);
        let plans = |half: &[u64]| {
            half.iter()
                .copied()
                .map(|seed| target.device.plan(seed))
                .collect::<Vec<_>>()
        };
        let Some(half) = [one, other]
            .into_iter()
            .find(|half| repeats(target, &plans(half), harm))
        else {
            break;
        };
        seeds = half;
    }
    of_seeds(target, seeds, harm)
}

fn of_seeds(target: Target<'_>, seeds: &[u64], harm: &Harm) -> Failure {
    let plan = match seeds {
        [seed] => Some(minimise(target.device.plan(*seed), |plan| {
            repeats(target, std::slice::from_ref(plan), harm)
        })),
        _ => None,
    };
    Failure {
        seeds: seeds.to_vec(),
        harm: harm.to_string(),
        plan,
    }
}

/// Leaves lies out of a plan as long as the rest does the same. Lies that do it only together stay.
fn minimise(mut plan: Plan, does_it: impl Fn(&Plan) -> bool) -> Plan {
    let mut at = 0;
    while plan.lies.len() > 1 && at < plan.lies.len() {
        let mut fewer = plan.clone();
        fewer.lies.remove(at);
        if does_it(&fewer) {
            plan = fewer;
        } else {
            at += 1;
        }
    }
    plan
}

/// Whether plans do this kind of harm in a new guest. What can't be found out doesn't repeat.
fn repeats(target: Target<'_>, plans: &[Plan], harm: &Harm) -> bool {
    let Ok(victim) = target.boot("fuzz-again") else {
        return false;
    };
    let result = plans
        .iter()
        .try_for_each(|plan| victim.attack(plan).map(drop));
    let result = match result {
        Ok(()) => victim.rest(),
        Err(trouble) => {
            victim.abandon();
            Err(trouble)
        }
    };
    matches!(result, Err(Trouble::Harm(done)) if done.is_like(harm))
}

#[cfg(test)]
mod tests {
    use model::lies::{Kind, Lie};

    use super::*;

    #[test]
    fn lies_that_do_harm_only_together_stay() {
        let kinds = [Kind::Hash, Kind::Hang, Kind::Vlan, Kind::Stuck];
        let plan = Plan {
            lies: Vec::from(kinds.map(|kind| Lie::once(kind, 0))),
        };
        let has = |plan: &Plan, kind| plan.lies.iter().any(|lie| lie.kind == kind);
        let fewer = minimise(plan, |plan| has(plan, Kind::Hang) && has(plan, Kind::Stuck));
        let kinds: Vec<_> = fewer.lies.iter().map(|lie| lie.kind).collect();
        assert_eq!(kinds, [Kind::Hang, Kind::Stuck]);
    }
}
