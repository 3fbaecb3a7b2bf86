// SPDX-License-Identifier: MIT OR Apache-2.0

//! An engine that lies: its driver and its users come through, and once it is honest again, all works, if need
//! be after the driver was bound anew.

use cases::{ACCELERATOR, Result, Testbed};
use model::lies::{Kind, Lie, Plan};
use protocol::{
    Ns,
    bytes::Bytes,
    engine::{Execute, Executed, Operation, Outcome, Status, Step},
    kernel::WriteFile,
};
use vm::Error;

/// After how many occasions a lie is told, and how often.
const OFTEN: [(u32, u32); 3] = [(0, 1), (3, 2), (1, u32::MAX)];
/// Plans of several lies.
const PLANS: u64 = 40;
/// How long users wait for a device that may never answer.
const PATIENCE_MS: u64 = 150;
const DRIVER: &str = "/sys/bus/pci/drivers/copy_engine";

/// Copies a page in two steps.
fn copy(timeout_ms: u64) -> Execute {
    let step = Step {
        operation: Operation::Copy,
        source: 0,
        destination: 1,
        value: 0,
        fragments: vec![(0, 1000, 2048), (2048, 48, 0)],
    };
    Execute {
        engine: 0,
        besides: 1,
        memory: ACCELERATOR,
        timeout_ms,
        marked: false,
        pieces: vec![Bytes(vec![0x11; 4096]), Bytes(vec![0xee; 4096])],
        steps: vec![step.clone(), step],
    }
}

struct Attack<'b> {
    bed: &'b Testbed,
    address: String,
    /// How often the driver was bound anew.
    bound: u32,
}

impl<'b> Attack<'b> {
    fn new(bed: &'b Testbed) -> Result<Self> {
        bed.guest.allow_log(&["does not come to rest"]);
        Ok(Self {
            bed,
            address: bed.pci_address("engine")?,
            bound: 0,
        })
    }

    /// Uses the engine while it lies. Returns how often it did.
    fn carry_out(&mut self, plan: &Plan) -> Result<u64> {
        let guest = &self.bed.guest;
        guest.lie_engine(Some(&serde_json::to_value(plan)?))?;
        // What comes of it is the engine's business, as long as the guest answers.
        if let Err(error) = guest.call(copy(PATIENCE_MS)) {
            let refused = matches!(error, Error::Refused { .. });
            assert!(refused, "{plan:?}: {error}");
        }
        let told = guest.lie_engine(Some(&serde_json::to_value(Plan::default())?))?;
        if !self.works()? {
            // A queue that did not come to rest is lost until then.
            for what in ["unbind", "bind"] {
                guest.call(WriteFile {
                    ns: Ns::Local,
                    path: format!("{DRIVER}/{what}"),
                    contents: self.address.clone(),
                })?;
            }
            self.bound += 1;
            assert!(self.works()?, "{plan:?}: nothing helps");
        }
        guest.check_log()?;
        guest.check_nics()?;
        Ok(told.into_iter().map(u64::from).sum())
    }

    /// Whether the engine does what it is to, for two users and more.
    fn works(&self) -> Result<bool> {
        let request = Execute {
            besides: 6,
            ..copy(60_000)
        };
        let Ok(Executed { outcomes, pieces }) = self.bed.guest.call(request) else {
            return Ok(false);
        };
        let done = Outcome {
            status: Status::Done,
            fragments: 2,
            bytes: 1048,
        };
        let mut expected = vec![0xee; 4096];
        expected[2048..3048].fill(0x11);
        expected[..48].fill(0x11);
        Ok(outcomes == [done, done] && pieces[1].0 == expected)
    }
}

/// Plans of one kind.
fn plans(kind: Kind) -> impl Iterator<Item = Plan> {
    OFTEN.into_iter().map(move |(after, times)| {
        let value = 0x0123_4567_89ab_cdef;
        let lie = Lie {
            kind,
            after,
            times,
            value,
        };
        Plan { lies: vec![lie] }
    })
}

#[test]
fn each_lie_of_an_engine_is_survived() -> Result {
    let bed = Testbed::engine("hostile-engine-kinds")?;
    for kind in Kind::OF_ENGINE {
        let mut attack = Attack::new(&bed)?;
        let mut told = 0;
        for plan in plans(kind) {
            told += attack.carry_out(&plan)?;
        }
        assert_ne!(told, 0, "{kind} was never told");
        // Only an engine that keeps what it was given takes more than time.
        let may_be_lost = matches!(
            kind,
            Kind::Stuck | Kind::Ones | Kind::Garbage | Kind::LostWrite
        );
        assert!(
            attack.bound == 0 || may_be_lost,
            "{kind} took the driver to be bound anew"
        );
    }
    bed.finish()?;
    Ok(())
}

#[test]
fn plans_of_several_lies_of_an_engine_are_survived() -> Result {
    let bed = Testbed::engine("hostile-engine-plans")?;
    let mut attack = Attack::new(&bed)?;
    let mut told = 0;
    for seed in 0..PLANS {
        told += attack.carry_out(&Plan::of_engine(seed))?;
    }
    assert_ne!(told, 0);
    bed.finish()?;
    Ok(())
}
