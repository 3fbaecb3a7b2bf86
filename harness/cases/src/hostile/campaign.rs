// SPDX-License-Identifier: MIT OR Apache-2.0

//! Many plans, in several guests at once, and in one after the other.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread, vec,
};

use super::{
    narrow,
    outcome::{Harm, Trouble},
    tally::Tally,
    victim::Target,
};

/// After so many plans a guest ends, and is looked through for what they left behind.
const PER_GUEST: usize = 100;

/// Carries out the plans of these seeds, in so many guests at once. `progress` is called after each plan.
/// The tally is the same whichever guest took which plan.
pub fn campaign(
    target: Target<'_>,
    guests: usize,
    seeds: Vec<u64>,
    progress: impl FnMut(&Tally) + Send,
) -> Tally {
    let tally = Tally {
        wanted: seeds.len() as u64,
        ..Tally::default()
    };
    let shared = Mutex::new(Shared {
        seeds: seeds.into_iter(),
        tally,
        progress,
    });
    thread::scope(|scope| {
        for _ in 0..guests.max(1) {
            scope.spawn(|| {
                let next = || lock(&shared).next();
                while let Some(seed) = next() {
                    if let Err(why) = carry_out(target, &shared, seed) {
                        lock(&shared).tally.stopped.get_or_insert(why);
                    }
                }
            });
        }
    });
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    shared.tally.sorted()
}

/// What the guests have in common.
struct Shared<P> {
    seeds: vec::IntoIter<u64>,
    tally: Tally,
    progress: P,
}

impl<P: FnMut(&Tally)> Shared<P> {
    /// The next plan's seed, unless the harness has failed.
    fn next(&mut self) -> Option<u64> {
        match self.tally.stopped {
            Some(_) => None,
            None => self.seeds.next(),
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally);
        (self.progress)(&self.tally);
    }
}

/// Carries out plans in a guest, from this one on, until there are enough, or none is left, or one does
/// harm.
///
/// # Errors
///
/// Why the harness can't go on.
fn carry_out<P: FnMut(&Tally)>(
    target: Target<'_>,
    shared: &Mutex<Shared<P>>,
    first: u64,
) -> std::result::Result<(), String> {
    let victim = target.boot("fuzz").map_err(|error| error.to_string())?;
    let mut carried = Vec::new();
    let mut next = Some(first);
    while let Some(seed) = next {
        match victim.attack(&target.device.plan(seed)) {
            Ok((outcome, told)) => lock(shared).change(|tally| tally.count(seed, outcome, &told)),
            Err(trouble) => {
                victim.abandon();
                let harm = harm(trouble)?;
                lock(shared).change(|tally| tally.count_harm(&harm, 1));
                let failure = narrow::of_plan(target, &carried, seed, &harm);
                lock(shared).tally.failures.push(failure);
                return Ok(());
            }
        }
        carried.push(seed);
        next = match carried.len() < PER_GUEST {
            true => lock(shared).next(),
            false => None,
        };
    }
    let Err(trouble) = victim.rest() else {
        return Ok(());
    };
    let harm = harm(trouble)?;
    lock(shared).change(|tally| tally.count_harm(&harm, 0));
    let failure = narrow::of_guest(target, &carried, &harm);
    lock(shared).tally.failures.push(failure);
    Ok(())
}

fn harm(trouble: Trouble) -> std::result::Result<Harm, String> {
    match trouble {
        Trouble::Harm(harm) => Ok(harm),
        Trouble::Harness(why) => Err(why),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
