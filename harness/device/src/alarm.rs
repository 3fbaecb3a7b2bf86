// SPDX-License-Identifier: MIT OR Apache-2.0

//! The time, and a thread for each device that wakes it at its deadline.

use std::{
    io,
    sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

use crate::{Port, lock};

/// A device that always has something due does not keep a processor busy.
const SHORTEST: u64 = 1_000;

/// Nanoseconds since the program first asked, the same for all devices.
pub(crate) fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// When a device is to be woken.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    state: Mutex<State>,
    earlier: Condvar,
}

#[derive(Debug, Default)]
struct State {
    deadline: Option<u64>,
    /// When the thread looks again by itself.
    wakes: Option<u64>,
    ended: bool,
}

impl Alarm {
    /// Sets it, or stops it. Setting it to a later time costs the thread a look in between, and the caller
    /// nothing.
    pub(crate) fn set(&self, deadline: Option<u64>) {
        let mut state = lock(&self.state);
        state.deadline = deadline;
        let is_earlier = |deadline| state.wakes.is_none_or(|wakes| deadline < wakes);
        if deadline.is_some_and(is_earlier) {
            self.earlier.notify_one();
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.earlier.notify_one();
    }

    /// Starts the thread for a port.
    pub(crate) fn start(self: Arc<Self>, port: Weak<Port>) -> io::Result<()> {
        let builder = thread::Builder::new().name("alarm".to_owned());
        builder.spawn(move || {
            while self.wait() {
                match port.upgrade() {
                    Some(port) => port.elapse(),
                    None => return,
                }
            }
        })?;
        Ok(())
    }

    /// Waits for the deadline, and clears it. Returns `false` at the end.
    fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        let earliest = now() + SHORTEST;
        while !state.ended {
            let deadline = state.deadline.map(|deadline| deadline.max(earliest));
            let left = deadline.map(|deadline| deadline.saturating_sub(now()));
            if left == Some(0) {
                state.deadline = None;
                return true;
            }
            state.wakes = deadline;
            state = match left {
                Some(left) => {
                    let left = Duration::from_nanos(left);
                    let waited = self.earlier.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.earlier.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
            // Awake: it looks before it waits again.
            state.wakes = Some(0);
        }
        false
    }
}
