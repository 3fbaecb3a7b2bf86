// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a receiver has received and not returned yet: consecutive fragments of the stream are a batch,
//! which the host may look at before it has them returned.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Condvar, Mutex, PoisonError},
};

use anyhow::{Context, Result};
use protocol::{Event, JobId, Mismatch, Release, memory::Span};

use super::report::{Checker, Meter};
use crate::{lock::lock, outbox::send_event};

/// A part of the memory that holds payload, until it is returned.
pub(super) trait Fragment {
    /// Where it is.
    fn span(&self) -> Span;
}

/// The memory that is received into, and how its fragments are returned.
pub(super) trait Source {
    /// A part of it that holds payload.
    type Fragment: Fragment;
    /// What returns fragments.
    type Returner: Send;

    /// Copies from the memory.
    fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<()>;

    /// Returns fragments, each once.
    fn return_fragments(
        returner: &mut Self::Returner,
        fragments: Vec<Self::Fragment>,
    ) -> Result<()>;
}

/// What the host wants to know of fragments, and when they are returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    pub(super) seed: u64,
    pub(super) verify: bool,
    pub(super) report: bool,
    pub(super) release: Release,
}

struct Batch<F> {
    stream_offset: u64,
    fragments: Vec<F>,
}

struct State<S: Source> {
    batches: BTreeMap<u64, Batch<S::Fragment>>,
    returner: S::Returner,
    checker: Checker,
    meter: Meter,
    next: u64,
    counts: Counts,
}

/// What has come so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// All payload.
    pub(super) bytes: u64,
    /// What of it is not in the memory.
    pub(super) linear_bytes: u64,
    pub(super) fragments: u64,
    /// Fragments that are not returned.
    pub(super) held: u64,
    /// Where the payload was not what was sent.
    pub(super) mismatch: Option<Mismatch>,
    /// From the first byte to the last.
    pub(super) elapsed_ns: u64,
}

/// All batches of a job, shared by the thread that receives and those that control it.
pub(super) struct Held<S: Source> {
    id: JobId,
    policy: Policy,
    pub(super) source: S,
    state: Mutex<State<S>>,
    /// Fragments were returned, or the job must end.
    changed: Condvar,
}

impl<S: Source> State<S> {
    fn passed(&mut self, bytes: u64) {
        self.counts.bytes += bytes;
        self.meter.passed(self.counts.bytes);
    }
}

impl<S: Source> Held<S> {
    pub(super) fn new(id: JobId, policy: Policy, source: S, returner: S::Returner) -> Self {
        Self {
            id,
            policy,
            source,
            state: Mutex::new(State {
                batches: BTreeMap::new(),
                returner,
                checker: Checker::new(policy.seed),
                meter: Meter::new(id),
                next: 0,
                counts: Counts::default(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Counts consecutive fragments of the stream, keeps them and reports them, or returns them at
    /// once.
    pub(super) fn take_in(&self, fragments: Vec<S::Fragment>) -> Result<()> {
        if fragments.is_empty() {
            return Ok(());
        }
        let mut state = lock(&self.state);
        let stream_offset = state.counts.bytes;
        let lengths = fragments
            .iter()
            .map(|fragment| u64::from(fragment.span().len));
        state.counts.fragments += fragments.len() as u64;
        state.passed(lengths.sum());
        let batch = state.next;
        state.next += 1;
        let event = self.policy.report.then(|| Event::Fragments {
            batch,
            stream_offset,
            fragments: fragments.iter().map(Fragment::span).collect(),
        });
        let report = || {
            event
                .into_iter()
                .for_each(|event| send_event(self.id, event))
        };
        let taken = Batch {
            stream_offset,
            fragments,
        };
        if self.policy.release == Release::Immediate {
            report();
            return self.return_batch(&mut state, taken);
        }
        // Held before it is reported: the host may answer before this thread continues.
        state.batches.insert(batch, taken);
        drop(state);
        report();
        Ok(())
    }

    /// Counts payload that is not in the memory.
    pub(super) fn take_in_linear(&self, bytes: &[u8]) {
        let len = bytes.len() as u64;
        let mut state = lock(&self.state);
        let stream_offset = state.counts.bytes;
        state.checker.check(stream_offset, bytes);
        state.counts.linear_bytes += len;
        state.passed(len);
        drop(state);
        if self.policy.report {
            send_event(self.id, Event::Linear { stream_offset, len });
        }
    }

    /// Returns a batch that was reported.
    pub(super) fn release(&self, batch: u64) -> Result<()> {
        let mut state = lock(&self.state);
        let held = state.batches.remove(&batch);
        let held =
            held.with_context(|| format!("batch {batch} was never reported, or released before"))?;
        self.return_batch(&mut state, held)
    }

    /// Returns all that is held.
    pub(super) fn release_all(&self) -> Result<()> {
        let mut state = lock(&self.state);
        let mut all = mem::take(&mut state.batches).into_values();
        all.try_for_each(|batch| self.return_batch(&mut state, batch))
    }

    /// Until it is returned the payload must stay as it arrived: it is checked only now, to catch
    /// memory that is reused too early.
    fn return_batch(&self, state: &mut State<S>, batch: Batch<S::Fragment>) -> Result<()> {
        self.check(&mut state.checker, &batch)?;
        S::return_fragments(&mut state.returner, batch.fragments)
    }

    /// Checks what will not be returned.
    pub(super) fn check_rest(&self) -> Result<()> {
        let mut state = lock(&self.state);
        let State {
            batches, checker, ..
        } = &mut *state;
        let mut batches = batches.values();
        batches.try_for_each(|batch| self.check(checker, batch))
    }

    fn check(&self, checker: &mut Checker, batch: &Batch<S::Fragment>) -> Result<()> {
        if self.policy.verify {
            let mut at = batch.stream_offset;
            let mut copy = Vec::new();
            for fragment in &batch.fragments {
                let Span { offset, len } = fragment.span();
                copy.resize(len as usize, 0);
                self.source.read_at(offset as usize, &mut copy)?;
                checker.check(at, &copy);
                at += u64::from(len);
            }
        }
        Ok(())
    }

    /// What returns fragments.
    pub(super) fn with_returner<T>(&self, work: impl FnOnce(&mut S::Returner) -> T) -> T {
        work(&mut lock(&self.state).returner)
    }

    /// Wakes who waits for fragments to be returned.
    pub(super) fn notify(&self) {
        // Under the lock, so that a waiter cannot miss it between its check and its wait.
        let _state = lock(&self.state);
        self.changed.notify_all();
    }

    /// Waits until the host has had everything returned, where it does, or the job is over.
    pub(super) fn wait_for_release(&self, over: impl Fn() -> bool) {
        if self.policy.release == Release::OnRequest {
            let waiting = |state: &mut State<S>| !state.batches.is_empty() && !over();
            let released = self.changed.wait_while(lock(&self.state), waiting);
            drop(released.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// What has come so far.
    pub(super) fn counts(&self) -> Counts {
        let state = lock(&self.state);
        let held = state.batches.values().map(|batch| batch.fragments.len());
        Counts {
            held: held.sum::<usize>() as u64,
            mismatch: state.checker.mismatch(),
            elapsed_ns: state.meter.elapsed_ns(),
            ..state.counts
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::Payload;

    use super::*;

    const SEED: u64 = 7;

    #[derive(Debug)]
    struct Part(Span);

    impl Fragment for Part {
        fn span(&self) -> Span {
            self.0
        }
    }

    /// Memory that is received into, and that a test may overwrite.
    struct Memory(Mutex<Vec<u8>>);

    impl Source for Memory {
        type Fragment = Part;
        type Returner = Vec<Part>;

        fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
            bytes.copy_from_slice(&lock(&self.0)[offset..offset + bytes.len()]);
            Ok(())
        }

        fn return_fragments(returned: &mut Vec<Part>, fragments: Vec<Part>) -> Result<()> {
            returned.extend(fragments);
            Ok(())
        }
    }

    /// Two fragments of payload, held.
    fn held() -> Held<Memory> {
        let mut memory = vec![0; 200];
        Payload::new(SEED).fill(0, &mut memory);
        let policy = Policy {
            seed: SEED,
            verify: true,
            report: false,
            release: Release::OnRequest,
        };
        let held = Held::new(JobId(1), policy, Memory(Mutex::new(memory)), Vec::new());
        for offset in [0, 100] {
            held.take_in(vec![Part(Span { offset, len: 100 })]).unwrap();
        }
        held
    }

    #[test]
    fn payload_that_stays_as_it_arrived_is_right_when_it_is_returned() {
        let held = held();
        assert_eq!(held.counts().held, 2);
        held.release(1).unwrap();
        held.release(0).unwrap();
        assert!(held.release(0).is_err(), "it was returned");
        let counts = held.counts();
        assert_eq!((counts.bytes, counts.held, counts.mismatch), (200, 0, None));
        assert_eq!(held.with_returner(|returned| returned.len()), 2);
    }

    #[test]
    fn memory_that_is_reused_while_it_is_held_is_noticed() {
        let held = held();
        lock(&held.source.0)[130] ^= 1;
        held.release(0).unwrap();
        assert_eq!(held.counts().mismatch, None);
        held.release(1).unwrap();
        assert_eq!(held.counts().mismatch.map(|at| at.offset), Some(130));
    }

    #[test]
    fn so_is_memory_that_will_not_be_returned() {
        let held = held();
        lock(&held.source.0)[30] ^= 1;
        held.check_rest().unwrap();
        assert_eq!(held.counts().mismatch.map(|at| at.offset), Some(30));
    }
}
