// SPDX-License-Identifier: MIT OR Apache-2.0

//! What became of plans, counted.

use model::lies::Plan;
use serde::{Deserialize, Serialize};

use super::outcome::{Harm, Outcome};

/// What became of plans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many were to be carried out.
    pub wanted: u64,
    /// How many were. Each has one of the outcomes below, or did harm.
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
    /// Memory stayed when the interface was down.
    pub leaks: u64,
    /// Plans that did harm.
    pub failures: Vec<Failure>,
    /// Seeds of plans that the driver did not come through by itself.
    pub not_recovered: Vec<u64>,
    /// Why not all plans were carried out: a failure of the harness.
    pub stopped: Option<String>,
}

/// Plans that did harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Their seeds: one if it does it alone, in a new guest, and else those that one guest carried out
    /// until then.
    pub seeds: Vec<u64>,
    /// What they did.
    pub harm: String,
    /// The one plan, without the lies that it takes none of.
    pub plan: Option<Plan>,
}

impl Tally {
    /// How often there was harm.
    #[must_use]
    pub fn harms(&self) -> u64 {
        self.violations + self.panics + self.hangs + self.wrong_bytes + self.leaks
    }

    /// Whether all plans were carried out.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.stopped.is_none() && self.plans == self.wanted
    }

    pub(super) fn count(&mut self, seed: u64, outcome: Outcome, told: &[u32]) {
        self.plans += 1;
        self.lies += told.iter().copied().map(u64::from).sum::<u64>();
        *match outcome {
            Outcome::Unharmed => &mut self.unharmed,
            Outcome::Recovered => &mut self.recovered,
            Outcome::Restarted => &mut self.restarted,
            Outcome::Detached => &mut self.detached,
        } += 1;
        if matches!(outcome, Outcome::Restarted | Outcome::Detached) {
            self.not_recovered.push(seed);
        }
    }

    /// Counts a harm, and the plans that have no outcome for it: none at the end of a guest.
    pub(super) fn count_harm(&mut self, harm: &Harm, plans: u64) {
        self.plans += plans;
        *match harm {
            Harm::Violation(_) => &mut self.violations,
            Harm::Panic(_) => &mut self.panics,
            Harm::Hang(_) => &mut self.hangs,
            Harm::WrongBytes(_) => &mut self.wrong_bytes,
            Harm::Leak(_) => &mut self.leaks,
        } += 1;
    }

    /// By seeds, whichever guest was faster.
    pub(super) fn sorted(mut self) -> Self {
        self.failures.sort_by(|a, b| a.seeds.cmp(&b.seeds));
        self.not_recovered.sort_unstable();
        self
    }
}
