// SPDX-License-Identifier: MIT OR Apache-2.0

//! What all flows of a run share: when to stop, what came or went, and progress.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use devmem_tcp::way::ByWay;
use indicatif::{ProgressBar, ProgressStyle};
use payload::Mismatch;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register;

/// How often a flow that waits looks whether it is to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// What all flows of a run share.
pub(crate) struct Run {
    stop: Arc<AtomicBool>,
    bytes: AtomicU64,
    state: Mutex<State>,
    progress: ProgressBar,
}

#[derive(Default)]
struct State {
    first: Option<Instant>,
    last: Option<Instant>,
    /// Bytes that passed as the time began.
    untimed: u64,
    ways: ByWay,
    pieces: u64,
    mismatch: Option<Mismatch>,
}

impl State {
    fn includes(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
    }
}

/// What came or went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) ways: ByWay,
    pub(crate) pieces: u64,
    pub(crate) mismatch: Option<Mismatch>,
    /// Bytes that took that time: not those of a listener's first read, which may have waited for it.
    pub(crate) timed: u64,
    /// From the first bytes to the last; of what is sent, until the peer has read it.
    pub(crate) elapsed: Duration,
}

impl Run {
    /// A run that ends at a signal, or when it is told to: a second signal does not keep it from undoing what
    /// it has changed. Progress is shown on a terminal only.
    pub(crate) fn new(what: &'static str) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            register(signal, Arc::clone(&stop)).context("handling signals")?;
        }
        let style =
            ProgressStyle::with_template("{msg} {bytes}, {binary_bytes_per_sec}, {elapsed}")
                .context("the style of progress")?;
        Ok(Self {
            stop,
            bytes: AtomicU64::new(0),
            state: Mutex::default(),
            progress: ProgressBar::no_length()
                .with_style(style)
                .with_message(what),
        })
    }

    /// Whether it is to end.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Ends it.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Notes that the time of the run includes now, which is that from the first bytes to the last otherwise.
    pub(crate) fn includes_now(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.includes(Instant::now());
    }

    /// Counts what passed, in a number of pieces.
    pub(crate) fn passed(&self, ways: ByWay, pieces: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.first.is_none() {
            state.untimed = ways.total();
        }
        state.includes(Instant::now());
        state.ways.add_all(ways);
        state.pieces += pieces;
        drop(state);
        let bytes = self.bytes.fetch_add(ways.total(), Relaxed) + ways.total();
        self.progress.set_position(bytes);
    }

    /// Notes payload that is not what was sent, and ends the run.
    pub(crate) fn wrong(&self, mismatch: Mismatch) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.mismatch.get_or_insert(mismatch);
        drop(state);
        self.stop();
    }

    /// What passed.
    pub(crate) fn totals(&self) -> Totals {
        self.progress.finish_and_clear();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = state
            .first
            .zip(state.last)
            .map(|(first, last)| last - first);
        Totals {
            timed: state.ways.total() - state.untimed,
            ways: state.ways,
            pieces: state.pieces,
            mismatch: state.mismatch,
            elapsed: elapsed.unwrap_or_default(),
        }
    }
}

/// Runs a thread for each part. The first error ends the run, and is returned when all have ended.
pub(crate) fn in_threads<P: Send>(
    run: &Run,
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> Result<()> + Sync,
) -> Result<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let started = parts.into_iter().map(|part| {
            scope.spawn(move || {
                let done = work(part);
                if done.is_err() {
                    run.stop();
                }
                done
            })
        });
        let threads: Vec<_> = started.collect();
        let mut result = Ok(());
        for thread in threads {
            match thread.join() {
                Ok(done) => result = result.and(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        result
    })
}
