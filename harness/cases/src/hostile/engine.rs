// SPDX-License-Identifier: MIT OR Apache-2.0

//! One plan of an engine: work while it lies, and whether it works after that.

use std::ops::Range;

use model::lies::{Kind, Lie};
use protocol::{
    bytes::Bytes,
    engine::{self, Execute, Executed, Operation, Status, Step as Work},
    kernel::UnloadModule,
};
use vm::Error;

use super::{
    outcome::{Harm, Outcome, Step, Trouble},
    victim::{Lies, granted},
};
use crate::{ACCELERATOR, Result, Testbed, testbed::ENGINE_DRIVER};

/// How long users wait for an engine that may never answer, and for one that is honest, in milliseconds.
const PATIENCE_MS: u64 = 150;
const HONEST_MS: u64 = 60_000;
/// Steps while the engine lies, so that there are occasions, and after that.
const STEPS: usize = 16;
const HONEST_STEPS: usize = 2;
/// Bytes of a piece of memory.
const PIECE: usize = 4096;
/// Where bytes are copied to.
const DESTINATIONS: [Range<usize>; 2] = [0..48, 2048..3048];

pub(super) fn prepare(bed: &Testbed) -> Result {
    bed.load_engine()?;
    bed.guest.allow_log(&["does not come to rest"]);
    Ok(())
}

pub(super) fn let_go(bed: &Testbed) -> Step {
    let name = ENGINE_DRIVER.to_owned();
    match granted(bed.guest.call(UnloadModule::new(name)))? {
        Some(()) => Ok(()),
        None => Err(Harm::Hang("to unload the driver is refused".to_owned()).into()),
    }
}

/// Whether no driver could detect what is wrong once this lie was told: the engine reports work as done that it has
/// not done.
pub(super) fn is_believed(lie: &Lie, told: u32) -> bool {
    told > 0 && matches!(lie.kind, Kind::NoData | Kind::Repeated | Kind::Status)
}

pub(super) fn attack(lies: &Lies<'_>) -> Step<(Outcome, Vec<u32>)> {
    let bed = lies.bed;
    lies.begin()?;
    let done = copy(bed, 1, STEPS, PATIENCE_MS)?;
    // Before it is honest: what it says then is no excuse.
    let is_excused = lies.excuse()?;
    let told = lies.end()?;
    let lost = match done {
        Copied::Right => false,
        Copied::Wrong if !is_excused => return Err(wrong("while it lies")),
        Copied::Stray => return Err(wrong("where it was not to")),
        Copied::Wrong | Copied::Not => true,
    };
    let outcome = match works(bed)? {
        true if lost => Outcome::Recovered,
        true => Outcome::Unharmed,
        false => {
            // A queue that did not come to rest is lost until then.
            bind_anew(bed)?;
            match works(bed)? {
                true => Outcome::Detached,
                false => return Err(Harm::Hang("nothing helps but a new guest".to_owned()).into()),
            }
        }
    };
    Ok((outcome, told))
}

/// What became of copying, step by step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    Right,
    /// The engine says that it was done, and it wasn't.
    Wrong,
    /// An error came, or a completion that says so.
    Not,
    /// Something was written where nothing was to be.
    Stray,
}

/// Has the same copied in so many steps, while so many other users have a queue.
fn copy(bed: &Testbed, besides: u32, steps: usize, timeout_ms: u64) -> Step<Copied> {
    let step = Work {
        operation: Operation::Copy,
        source: 0,
        destination: 1,
        value: 0,
        fragments: vec![(0, 1000, 2048), (2048, 48, 0)],
    };
    let request = Execute {
        engine: 0,
        besides,
        memory: ACCELERATOR,
        timeout_ms,
        marked: false,
        pieces: vec![Bytes(vec![0x11; PIECE]), Bytes(vec![0xee; PIECE])],
        steps: vec![step; steps],
    };
    match bed.guest.call(request) {
        Ok(executed) => Ok(judge(&executed)),
        Err(Error::Refused { .. }) => Ok(Copied::Not),
        Err(error) => Err(error.into()),
    }
}

fn judge(executed: &Executed) -> Copied {
    let done = engine::Outcome {
        status: Status::Done,
        fragments: 2,
        bytes: 1048,
    };
    let [Bytes(source), Bytes(destination)] = &executed.pieces[..] else {
        return Copied::Wrong;
    };
    let (copied, rest): (Vec<_>, Vec<_>) = destination
        .iter()
        .enumerate()
        .partition(|(at, _)| DESTINATIONS.iter().any(|range| range.contains(at)));
    if source.iter().any(|&byte| byte != 0x11) || rest.iter().any(|(_, byte)| **byte != 0xee) {
        return Copied::Stray;
    }
    let failed = executed.outcomes.iter().any(|outcome| *outcome != done);
    if failed || executed.failure.is_some() {
        return Copied::Not;
    }
    match copied.iter().all(|(_, byte)| **byte == 0x11) {
        true => Copied::Right,
        false => Copied::Wrong,
    }
}

/// Whether the engine does what it is to, for many users.
fn works(bed: &Testbed) -> Step<bool> {
    match copy(bed, 6, HONEST_STEPS, HONEST_MS)? {
        Copied::Right => Ok(true),
        Copied::Not => Ok(false),
        Copied::Wrong | Copied::Stray => Err(wrong("after the lies")),
    }
}

fn wrong(when: &str) -> Trouble {
    Harm::WrongBytes(format!("what the engine copied {when}")).into()
}

fn bind_anew(bed: &Testbed) -> Step {
    let address = bed.pci_address("engine")?;
    for what in ["unbind", "bind"] {
        if granted(bed.tell_driver(ENGINE_DRIVER, what, &address))?.is_none() {
            return Err(Harm::Hang(format!("to {what} the driver is refused")).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_engine_says_is_done_is_compared() {
        let done = engine::Outcome {
            status: Status::Done,
            fragments: 2,
            bytes: 1048,
        };
        let mut copied = vec![0xee; PIECE];
        copied[2048..3048].fill(0x11);
        copied[..48].fill(0x11);
        let executed = |outcomes: [_; 2], bytes: &[u8]| Executed {
            outcomes: outcomes.to_vec(),
            failure: None,
            pieces: vec![Bytes(vec![0x11; PIECE]), Bytes(bytes.to_vec())],
        };
        assert_eq!(judge(&executed([done, done], &copied)), Copied::Right);
        assert_eq!(
            judge(&executed([done, done], &[0xee; PIECE])),
            Copied::Wrong
        );
        let failed = engine::Outcome {
            status: Status::Fault,
            ..done
        };
        assert_eq!(judge(&executed([done, failed], &copied)), Copied::Not);
        let unanswered = |bytes: &[u8]| Executed {
            outcomes: vec![done],
            failure: Some("no completion".to_owned()),
            ..executed([done; 2], bytes)
        };
        assert_eq!(judge(&unanswered(&copied)), Copied::Not);
        copied[48] = 0x11;
        for last in [done, failed] {
            assert_eq!(judge(&executed([done, last], &copied)), Copied::Stray);
        }
        assert_eq!(judge(&unanswered(&copied)), Copied::Stray);
    }
}
