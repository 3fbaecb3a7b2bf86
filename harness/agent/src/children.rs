// SPDX-License-Identifier: MIT OR Apache-2.0

//! Processes. PID 1 inherits all orphans, so all processes are reaped in one place, which keeps the
//! exit status of those that are waited for.

use std::{collections::HashMap, io, process::Command, sync::Mutex, thread, time::Duration};

use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use crate::lock::lock;

/// How often to check whether a process has exited.
const INTERVAL: Duration = Duration::from_millis(10);

/// Processes that are waited for, and how they ended.
static WAITED: Mutex<Option<HashMap<Pid, Option<WaitStatus>>>> = Mutex::new(None);

/// Reaps exited processes: those of jobs, and orphans.
pub(crate) fn reap() {
    let mut waited = lock(&WAITED);
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        let slot = waited.as_mut().and_then(|waited| waited.get_mut(&pid));
        if let Some(slot) = slot {
            *slot = Some(status);
        }
    }
}

/// A process that is waited for.
pub(crate) struct Child {
    pub(crate) pid: Pid,
}

impl Child {
    /// Starts a process.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        // Under the lock, no other thread can reap meanwhile.
        let mut waited = lock(&WAITED);
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        waited.get_or_insert_default().insert(pid, None);
        Ok(Self { pid })
    }

    /// Waits for its end.
    pub(crate) fn wait(self) -> WaitStatus {
        loop {
            reap();
            let mut waited = lock(&WAITED);
            let waited = waited.get_or_insert_default();
            if let Some(Some(status)) = waited.get(&self.pid).copied() {
                waited.remove(&self.pid);
                return status;
            }
            thread::sleep(INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> WaitStatus {
        let child = Child::spawn(Command::new("sh").args(["-c", script])).unwrap();
        // Whichever of the two reaps, `wait` gets the status.
        thread::sleep(Duration::from_millis(50));
        reap();
        child.wait()
    }

    #[test]
    fn a_child_that_somebody_else_reaps_leaves_its_status() {
        assert_eq!(run("exit 3").exit_status(), Some(3));
        assert_eq!(run("kill -KILL $$").terminating_signal(), Some(9));
    }
}
