// SPDX-License-Identifier: MIT OR Apache-2.0

//! The end of a guest, and whether its kernel complained.

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use protocol::{agent::PowerOff, kernel::FindLeaks};
use serde_json::json;

use super::Guest;
use crate::{
    Error, Result, Wire,
    channel::Silence,
    leaks,
    lock::lock,
    scan::{Finding, scan},
    silence::{END_TIMEOUT, ended},
};

/// How long kmemleak may take: it looks at all of an emulated processor's memory, twice.
const LEAKS_TIMEOUT: Duration = Duration::from_secs(600);

/// How often QEMU is asked whether the machine is off.
const POLL: Duration = Duration::from_millis(20);

/// A complaint of the kernel that is no reason to fail.
#[derive(Debug)]
pub(super) struct Expectation {
    /// What it contains, all of them.
    parts: Vec<String>,
    required: bool,
}

/// A guest that ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Directory of the logs.
    pub directory: PathBuf,
    /// The kernel's log.
    pub console: PathBuf,
    /// Every message between host and guest.
    pub transcript: PathBuf,
    /// What crossed each wire.
    pub pcaps: Vec<PathBuf>,
    /// Complaints that were expected or allowed.
    pub allowed: Vec<Finding>,
}

impl Guest {
    /// A complaint of the kernel that contains all of `parts` is what this run provokes:
    /// [`Guest::finish`] fails without it.
    pub fn expect_log(&self, parts: &[&str]) {
        self.expect(parts, true);
    }

    /// A complaint of the kernel that contains all of `parts` is no reason to fail, nor is its
    /// absence.
    pub fn allow_log(&self, parts: &[&str]) {
        self.expect(parts, false);
    }

    fn expect(&self, parts: &[&str], required: bool) {
        let mut expected = lock(&self.expected);
        expected.push(Expectation {
            parts: parts.iter().map(|&part| part.to_owned()).collect(),
            required,
        });
    }

    /// Looks for complaints in the kernel's log so far; returns those that are allowed.
    ///
    /// # Errors
    ///
    /// [`Error::KernelComplained`].
    pub fn check_log(&self) -> Result<Vec<Finding>> {
        self.judge(scan(&self.console_text()), self.console())
    }

    /// Returns the findings that are allowed, and fails when there are others.
    fn judge(&self, findings: Vec<Finding>, log: PathBuf) -> Result<Vec<Finding>> {
        let expected = lock(&self.expected);
        let is_expected = |finding: &Finding| expected.iter().any(|e| finding.has(&e.parts));
        let (allowed, findings): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_expected);
        if findings.is_empty() {
            Ok(allowed)
        } else {
            Err(Error::KernelComplained {
                findings,
                console: log,
            })
        }
    }

    /// Asks a kernel that has kmemleak for leaked memory.
    fn check_leaks(&self) -> Result<Vec<Finding>> {
        let Some(report) = self.call_within(FindLeaks {}, LEAKS_TIMEOUT.max(self.call_timeout))?
        else {
            return Ok(Vec::new());
        };
        let path = self.run.file("kmemleak.log");
        fs::write(&path, &report).map_err(Error::unwritable(&path))?;
        self.judge(leaks::findings(&report), path)
    }

    /// Turns the guest off, waits for QEMU's end and looks through the kernel's log. Before that, a
    /// kernel that has kmemleak is asked for leaks.
    ///
    /// # Errors
    ///
    /// [`Error::KernelComplained`] when the kernel complained, [`Error::LogLineMissing`] when it
    /// did not complain as expected, and those of a lost guest.
    pub fn finish(mut self) -> Result<Verdict> {
        self.finished = true;
        let leaks = self.check_leaks();
        self.call(PowerOff {})?;
        self.verdict(leaks)
    }

    /// As [`Guest::finish`], but the machine stays for `look` when the guest has turned it off: its
    /// devices are as the guest left them, and its processors stand still.
    ///
    /// # Errors
    ///
    /// As for [`Guest::finish`], and those of `look`.
    pub fn finish_and_look<T>(
        mut self,
        look: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<(Verdict, T)> {
        self.finished = true;
        let leaks = self.check_leaks();
        self.monitor("set-action", json!({"shutdown": "pause"}))?;
        self.call(PowerOff {})?;
        let begun = Instant::now();
        while self.monitor("query-status", json!({}))?["status"] != "shutdown" {
            if begun.elapsed() > self.end_timeout() {
                return Err(self.explain(Silence::Timeout, "power off", self.end_timeout()));
            }
            thread::sleep(POLL);
        }
        let seen = look(&self);
        self.monitor("quit", json!({}))?;
        Ok((self.verdict(leaks)?, seen?))
    }

    fn end_timeout(&self) -> Duration {
        self.call_timeout.max(END_TIMEOUT)
    }

    /// Waits for QEMU's end and looks through the kernel's log.
    fn verdict(self, leaks: Result<Vec<Finding>>) -> Result<Verdict> {
        let Some(status) = self.process.wait(self.end_timeout()) else {
            return Err(self.explain(Silence::Timeout, "power off", self.end_timeout()));
        };
        if !status.success() {
            return Err(ended("power off", status, &self.run));
        }
        if let Some(devices) = &self.devices {
            devices.check()?;
        }
        let mut allowed = self.check_log()?;
        allowed.extend(leaks?);
        let expected = lock(&self.expected);
        let missing = expected
            .iter()
            .find(|e| e.required && !allowed.iter().any(|finding| finding.has(&e.parts)));
        if let Some(Expectation { parts, .. }) = missing {
            return Err(Error::LogLineMissing {
                parts: parts.clone(),
                console: self.console(),
            });
        }
        Ok(Verdict {
            directory: self.directory().to_owned(),
            console: self.console(),
            transcript: self.transcript(),
            pcaps: (0..self.wires).map(|wire| self.pcap(Wire(wire))).collect(),
            allowed,
        })
    }
}
