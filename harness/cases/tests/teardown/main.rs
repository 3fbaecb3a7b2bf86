// SPDX-License-Identifier: MIT OR Apache-2.0

//! What happens to device memory when something is removed: every event in every state of its
//! owner.
//!
//! [`Event`] lists the events, [`State`] the states, and [`expected`] says for each pair what the
//! owner must see. Each pair is a test, `state::event`, in a guest of its own: the state is built,
//! the event happens, what the owner sees is compared, and what the event removed is restored.
//! Then nothing may be left of it, and the NIC must work as before: see [`check`].

mod check;
mod event;
mod outcome;
mod state;

use std::process::ExitCode;

use cases::{Ability, CaseError, Result, Testbed};
use event::Event;
use libtest_mimic::{Arguments, Trial};
use outcome::{Outcome, expected};
use state::{QUEUE, Scene, State};

/// Queue pairs: one that is never bound, the state's, another, and one to spare: the core requires
/// one more than those up to the bound one (`ethtool_check_max_channel()`).
const PAIRS: u32 = 4;

fn main() -> ExitCode {
    let trials = State::ALL.into_iter().flat_map(|state| {
        Event::ALL.into_iter().map(move |event| {
            let name = format!("{state}::{event}");
            Trial::test(name, move || Ok(pair(state, event)?))
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn pair(state: State, event: Event) -> Result {
    let ability = match state {
        State::Zcrx => Ability::Zcrx,
        State::Sending => Ability::DevmemTx,
        _ => Ability::DevmemRx,
    };
    let options = Testbed::options()
        .needs([
            ability,
            Ability::Channels,
            Ability::PagePools,
            Ability::RingSizes,
            Ability::Rss,
        ])
        .needs_counters(["rx_starved"])
        .binds([QUEUE, QUEUE + 1])
        .mtu(9000)
        .header_split()
        .cpus(PAIRS);
    let options = match event {
        Event::Removal => options.hot_plug(),
        Event::SurpriseRemoval => options.pull_out()?,
        _ => options,
    };
    let bed = options.boot(&format!("teardown-{state}-{event}"))?;
    // Pools of replaced rings wait for their pages.
    let mut pools = bed.page_pools(bed.local)?;
    pools.retain(|pool| pool.detach_time.is_none());

    let mut scene = Scene::build(&bed, state, event)?;
    let happened = event.happen(&bed, &mut scene)?;
    let outcome = scene.watch(happened)?;
    let expected = expected(event, state);
    if outcome != expected {
        let what = format!("expected is: {expected}; it is: {outcome}");
        return Err(CaseError::new(what));
    }
    event.undo(&bed)?;
    check::nothing_is_left(&bed, pools.len(), state.binding_stays(happened))?;
    check::works(&bed)?;
    bed.finish()
}
