// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs tests with cargo-nextest until one fails, and says which one did.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::scratch::Scratch;
use crate::cmd::Cmd;
use crate::model::Model;
use crate::project::Project;
use crate::tools;

/// The profile of `.config/nextest.toml`: it stops at the first failure, and soon ends what hangs.
const PROFILE: &str = "mutate";

/// Runs tests against the drivers of a scratch copy.
pub(super) struct Cases {
    program: PathBuf,
    root: PathBuf,
    our_nic: PathBuf,
    scratch: PathBuf,
    manifest: PathBuf,
    host_target: PathBuf,
    log: PathBuf,
    host_log: PathBuf,
}

impl Cases {
    /// Finds cargo-nextest.
    ///
    /// # Errors
    ///
    /// When it cannot be installed.
    pub(super) fn prepare(project: &Project, scratch: &Scratch) -> Result<Self> {
        Ok(Self {
            program: tools::nextest(project)?,
            root: project.root.clone(),
            our_nic: Model::Nobounce.file(project),
            scratch: scratch.sources(),
            manifest: scratch.manifest(),
            host_target: scratch.dir().join("host"),
            log: project.log("mutate-cases"),
            host_log: project.log("mutate-host"),
        })
    }

    /// Runs the cases of these names on a model of the NIC; returns the first that fails.
    ///
    /// # Errors
    ///
    /// When they can't be run.
    pub(super) fn run(&self, names: &[String], model: Model) -> Result<Option<String>> {
        self.run_cases(&named(names), model)
    }

    /// Runs all cases but those of these names; returns the first that fails.
    ///
    /// # Errors
    ///
    /// When they can't be run.
    pub(super) fn run_all_but(&self, names: &[String]) -> Result<Option<String>> {
        match names {
            [] => self.run_cases("all()", Model::Qemu),
            _ => self.run_cases(&format!("all() - ({})", named(names)), Model::Qemu),
        }
    }

    fn run_cases(&self, filter: &str, model: Model) -> Result<Option<String>> {
        let command = self
            .nextest(&self.root)
            .args(["-p", "cases", "--profile", PROFILE, "-E", filter])
            .env(vm::ENV, &self.manifest);
        let command = match model {
            Model::Qemu => command,
            // The default filter is for QEMU's.
            Model::Nobounce => command
                .args(["--ignore-default-filter"])
                .env(cases::NIC_ENV, &self.our_nic),
        };
        first_failure(command, &self.log)
    }

    /// Runs a package's tests on the host; returns the first that fails.
    ///
    /// # Errors
    ///
    /// When they can't be run.
    pub(super) fn run_on_host(&self, package: &str) -> Result<Option<String>> {
        let command = self
            .nextest(&self.scratch)
            .args(["-p", package])
            .env("CARGO_TARGET_DIR", &self.host_target);
        first_failure(command, &self.host_log)
    }

    fn nextest(&self, dir: &Path) -> Cmd {
        Cmd::new(&self.program)
            .args(["nextest", "run", "--color", "never", "--fail-fast"])
            .dir(dir)
    }
}

/// The filter for cases of these names, which may be in modules.
fn named(names: &[String]) -> String {
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("test(/(^|::){name}$/)"))
        .collect();
    names.join(" + ")
}

fn first_failure(command: Cmd, log: &Path) -> Result<Option<String>> {
    let mut first = None;
    let result = command.logged(log, |line| {
        if first.is_none() {
            first = failure(line);
        }
    });
    match first {
        Some(_) => Ok(first),
        None => result.map(|()| None),
    }
}

/// The test that a line of nextest's says has failed, or takes too long.
fn failure(line: &str) -> Option<String> {
    let (status, rest) = line.trim_start().split_once(" [")?;
    let (_, rest) = rest.split_once("s] ")?;
    // How many tests have run, of how many.
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(") ")?.1,
        None => rest,
    };
    let (binary, test) = rest.trim().split_once(' ')?;
    let binary = binary.strip_prefix("cases::").unwrap_or(binary);
    match status {
        "FAIL" | "ABORT" | "LEAK-FAIL" => Some(format!("{binary}::{test}")),
        "TIMEOUT" => Some(format!("timeout in {binary}::{test}")),
        signal if signal.starts_with("SIG") => Some(format!("{binary}::{test}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_that_failed_is_found_in_what_nextest_prints() {
        let found = |line| failure(line).unwrap();
        assert_eq!(
            found("        FAIL [   5.123s] (1/3) cases::tokens a_receiver_goes_on"),
            "tokens::a_receiver_goes_on"
        );
        assert_eq!(
            found("        FAIL [   5.123s] ( 7/33) i82576::ring a_ring_wraps"),
            "i82576::ring::a_ring_wraps"
        );
        assert_eq!(
            found("     SIGABRT [   0.011s] cases::xdp changes::programs_come"),
            "xdp::changes::programs_come"
        );
        assert_eq!(
            found("     TIMEOUT [ 300.010s] (2/3) cases::rss flows_reach"),
            "timeout in rss::flows_reach"
        );
    }

    #[test]
    fn other_lines_name_no_failure() {
        for line in [
            "        PASS [   5.123s] (1/3) cases::tokens a_receiver_goes_on",
            "        SLOW [> 60.000s] (───) cases::tokens a_receiver_goes_on",
            " TERMINATING [>300.000s] (───) cases::tokens a_receiver_goes_on",
            "     Summary [   5.123s] 3 tests run: 2 passed, 1 failed",
            "FAIL: something that a case says",
        ] {
            assert_eq!(failure(line), None, "{line}");
        }
    }

    #[test]
    fn a_filter_has_whole_names() {
        let names = ["one".to_owned(), "two".to_owned()];
        assert_eq!(named(&names), "test(/(^|::)one$/) + test(/(^|::)two$/)");
    }
}
