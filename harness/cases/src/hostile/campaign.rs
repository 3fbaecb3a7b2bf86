// SPDX-License-Identifier: MIT OR Apache-2.0

//! Many plans, in one guest after the other.

use model::nic::Plan;
use serde::Serialize;

use super::outcome::{Harm, Outcome};
use crate::{Result, Testbed};

/// After so many plans the guest is booted anew, so that its log, which is looked through after each plan,
/// stays short.
const PER_GUEST: u64 = 250;

/// What became of plans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How many there were.
    pub plans: u64,
    /// Lies that were told.
    pub lies: u64,
    /// Nothing was lost.
    pub unharmed: u64,
    /// All worked again by itself.
    pub recovered: u64,
    /// It did once the interface was brought up anew.
    pub restarted: u64,
    /// It did once the driver was bound anew.
    pub detached: u64,
    /// The driver did what it must not do, as the model says.
    pub violations: u64,
    /// The kernel complained.
    pub panics: u64,
    /// The guest did not answer, or nothing worked any more.
    pub hangs: u64,
    /// Wrong bytes came as good where the driver could know.
    pub wrong_bytes: u64,
    /// The plans that did harm.
    pub failures: Vec<Failure>,
    /// Seeds of plans that the driver did not come through by itself.
    pub not_recovered: Vec<u64>,
}

/// A plan that did harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What it did.
    pub harm: String,
    /// The plan, without the lies that it takes none of.
    pub plan: Plan,
}

impl Tally {
    /// Whether nothing happened that must not.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }

    fn count(&mut self, outcome: Outcome, told: &[u32]) {
        self.lies += told.iter().copied().map(u64::from).sum::<u64>();
        *match outcome {
            Outcome::Unharmed => &mut self.unharmed,
            Outcome::Recovered => &mut self.recovered,
            Outcome::Restarted => &mut self.restarted,
            Outcome::Detached => &mut self.detached,
        } += 1;
    }

    fn count_harm(&mut self, harm: &Harm) {
        *match harm {
            Harm::Violation(_) => &mut self.violations,
            Harm::Panic(_) => &mut self.panics,
            Harm::Hang(_) => &mut self.hangs,
            Harm::WrongBytes(_) => &mut self.wrong_bytes,
        } += 1;
    }
}

/// Carries out the plans of so many seeds, in guests that `boot` boots. `progress` is called after each.
///
/// # Errors
///
/// When a guest can't be booted.
pub fn campaign(
    boot: impl Fn(&str) -> Result<Testbed>,
    first: u64,
    plans: u64,
    mut progress: impl FnMut(&Tally),
) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut guest: Option<(Testbed, u64)> = None;
    for seed in (first..).take(usize::try_from(plans)?) {
        let (bed, carried) = match guest.take() {
            Some((bed, carried)) if carried < PER_GUEST => (bed, carried),
            used => {
                drop_quietly(used.map(|(bed, _)| bed));
                (boot("fuzz")?, 0)
            }
        };
        let plan = Plan::from_seed(seed);
        tally.plans += 1;
        match bed.attack(&plan) {
            Ok((outcome, told)) => {
                tally.count(outcome, &told);
                if matches!(outcome, Outcome::Restarted | Outcome::Detached) {
                    tally.not_recovered.push(seed);
                }
                guest = Some((bed, carried + 1));
            }
            Err(harm) => {
                tally.count_harm(&harm);
                drop_quietly(Some(bed));
                tally.failures.push(Failure {
                    seed,
                    harm: harm.to_string(),
                    plan: minimise(&boot, plan)?,
                });
            }
        }
        progress(&tally);
    }
    drop_quietly(guest.map(|(bed, _)| bed));
    Ok(tally)
}

/// Leaves lies out of a plan as long as it does harm without them, each time in a new guest.
fn minimise(boot: impl Fn(&str) -> Result<Testbed>, mut plan: Plan) -> Result<Plan> {
    let mut at = 0;
    while plan.lies.len() > 1 && at < plan.lies.len() {
        let mut fewer = plan.clone();
        fewer.lies.remove(at);
        let bed = boot("fuzz-minimise")?;
        let harmless = bed.attack(&fewer).is_ok();
        drop_quietly(Some(bed));
        if harmless {
            at += 1;
        } else {
            plan = fewer;
        }
    }
    Ok(plan)
}

/// Ends a guest that may be lost. It has been looked at after each plan.
fn drop_quietly(bed: Option<Testbed>) {
    if let Some(bed) = bed {
        bed.abandon();
    }
}
