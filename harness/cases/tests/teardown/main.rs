// SPDX-License-Identifier: MIT OR Apache-2.0

//! What happens to device memory when something is taken away: every event in every state of its
//! owner.
//!
//! [`Event`] lists what happens, [`State`] in what state, and [`expected`] says for each pair what
//! its owner shall see. The pairs are made from the two lists. For each, the state is built anew,
//! the event happens, what the owner sees is compared, and what the event took is put back. Then
//! nothing may be left of it, and the NIC must work as before: see [`check`]. A guest goes through
//! all events in one state.

mod check;
mod event;
mod outcome;
mod state;

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use cases::{Result, Testbed};
use event::Event;
use outcome::{Outcome, expected};
use state::{Scene, State};

/// Guests at a time.
const GUESTS: usize = 2;

/// Queue pairs: one that is never bound, the state's, another, and one that can be spared: the core
/// lets a NIC have no fewer than one more than those up to the bound one
/// (`ethtool_check_max_channel()`).
const PAIRS: u32 = 4;

/// What came of a pair.
enum Cell {
    AsExpected(Outcome),
    /// With what was expected and what came.
    Otherwise(String),
}

#[test]
fn whatever_is_taken_away_its_owner_is_told_what_the_kernel_promises_and_nothing_is_left() {
    let next = AtomicUsize::new(0);
    let columns: Mutex<Vec<_>> = Mutex::new(State::ALL.map(|_| Vec::new()).into());
    thread::scope(|scope| {
        for _ in 0..GUESTS {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&state) = State::ALL.get(index) else {
                        break;
                    };

                    let column = column(state);
                    columns.lock().unwrap_or_else(PoisonError::into_inner)[index] = column;
                }
            });
        }
    });
    let columns = columns.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{}", outcome::matrix(&columns));

    let failures: Vec<_> = columns
        .iter()
        .flatten()
        .filter_map(|cell| match cell {
            Cell::AsExpected(_) => None,
            Cell::Otherwise(what) => Some(what.as_str()),
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A guest in which pairs happen.
struct Guest {
    bed: Testbed,
    /// Page pools of the NIC, whatever happened.
    pools: usize,
    /// A pair left a binding behind.
    binding_stays: bool,
}

/// Goes through all events in one state. After a pair that fails, the next has a new guest.
fn column(state: State) -> Vec<Cell> {
    let mut guest = None;
    let mut cells: Vec<_> = Event::ALL
        .into_iter()
        .map(|event| {
            let expected = expected(event, state);
            let came = pair(&mut guest, event, state);
            let wrong = match came {
                Ok(came) if came == expected => return Cell::AsExpected(came),
                Ok(came) => format!("it is: {came}"),
                Err(error) => {
                    guest = None;
                    format!("but: {error}")
                }
            };
            Cell::Otherwise(format!(
                "{event}, {state}: expected is: {expected}; {wrong}"
            ))
        })
        .collect();
    if let Some(Err(error)) = guest.map(|guest| guest.bed.finish()) {
        cells.push(Cell::Otherwise(format!("after all, {state}: {error}")));
    }
    cells
}

/// Does one pair, in a guest that is booted if there is none.
fn pair(guest: &mut Option<Guest>, event: Event, state: State) -> Result<Outcome> {
    if guest.is_none() {
        let options = Testbed::options().mtu(9000).header_split().cpus(PAIRS);
        let name = format!("teardown-{state:?}").to_lowercase();
        let bed = options.hot_plug().boot(&name)?;
        // Those of rings that were replaced wait for their pages.
        let mut pools = bed.page_pools(bed.local)?;
        pools.retain(|pool| pool.detach_time.is_none());
        *guest = Some(Guest {
            pools: pools.len(),
            binding_stays: false,
            bed,
        });
    }
    let Some(Guest {
        bed,
        pools,
        binding_stays,
    }) = guest
    else {
        unreachable!("it was booted");
    };
    let mut scene = Scene::build(bed, state, event)?;
    let happened = event.happen(bed, &mut scene)?;
    let outcome = scene.watch(happened)?;
    *binding_stays |= state.binding_stays(happened);
    event.undo(bed)?;
    check::nothing_is_left(bed, *pools, *binding_stays)?;
    check::works(bed)?;
    Ok(outcome)
}
