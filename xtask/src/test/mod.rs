// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs the host tests and the end-to-end cases with cargo-nextest.

mod left_out;
mod matrix;
pub(crate) mod nic;
mod part;
mod retries;
mod skipped;
pub(crate) mod store;
mod threads;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use cases::Nic;
use clap::Args;

use crate::kernel::{self, Flavour};
use crate::model::Model;
use crate::project::{Locked, Project};
use crate::{failure, guest, packages, program, space, time_left, tools, ui};

use self::retries::Retries;
use self::skipped::Skipped;
use self::store::Verb;
use self::threads::{THREADS, threads};

/// The nextest profile of `.config/nextest.toml` that writes JUnit XML.
const PROFILE: &str = "ci";

/// The package with the kernel's own selftests, and the word in the names of their cases.
const KSELFTEST: &str = "kselftest";
/// The lab's tests, which run programs of the host's.
const LAB: &str = "lab";
const WITHOUT_LAB: &str = "not binary(lab)";

/// Bytes that the tests take, in a checkout that has run none, with what is built for them; and in one that has.
const SPACE: [u64; 2] = [7_000_000_000, 3_000_000_000];

/// Which tests run.
#[derive(Args)]
pub(crate) struct Options {
    /// With --debug: only the part that a change must pass, the profile
    /// `debug-part` of .config/nextest.toml
    #[arg(long)]
    part: bool,
    /// How long this may take: cases on other NICs that may take longer are skipped; with --part
    /// all are, if building the debug kernel may take longer. JUnit XML says so
    #[arg(long, value_name = "MINUTES", allow_negative_numbers = true)]
    minutes_left: Option<i64>,
    /// Run the cases on the NIC that a file describes, as those in harness/nics do:
    /// what it lacks is skipped, with the reason
    #[arg(long, value_name = "FILE", conflicts_with = "part")]
    nic: Option<PathBuf>,
    /// Run the cases, those about rigb too, on this model of the 82576, and nothing else: short for --nic
    /// with the description of rigb on it, in harness/nics
    #[arg(long, conflicts_with = "part")]
    model: Option<Model>,
    /// Run the cases on this kernel: a source tree, a folder that a kernel was built in, or a
    /// version whose source Debian has, such as 7.3. Of several a table is printed. What a
    /// kernel lacks is said, and cases that need it are skipped. With --nic, the cases on
    /// that NIC on each
    #[arg(long = "kernel", value_name = "KERNEL", conflicts_with_all = ["part", "minutes_left"])]
    kernels: Vec<String>,
    /// Run one of several parts, such as hash:1/4, the first of four: nextest's
    /// option, for each of its runs
    #[arg(long, value_name = "PART")]
    partition: Option<String>,
    /// Run only tests whose names contain one of these; words after `--`
    /// go to cargo-nextest (`-- -E 'package(cases)'`)
    #[arg(value_name = "FILTER", allow_hyphen_values = true)]
    filters: Vec<String>,
}

impl Options {
    /// What keeps the lab's tests out. nextest runs what any of the sets has that it is given, so that
    /// it must not be given this one beside the user's.
    fn without_lab(&self) -> &'static [&'static str] {
        let is_set = |word: &String| {
            ["-E", "--filterset", "--filter-expr"]
                .iter()
                .any(|option| word.starts_with(option))
        };
        match self.filters.iter().any(is_set) {
            true => &[],
            false => &["-E", WITHOUT_LAB],
        }
    }

    /// The description of the NIC that the cases run on, if not on rigb as always.
    fn nic(&self, project: &Project) -> Result<Option<PathBuf>> {
        if let (Some(file), Some(model)) = (&self.nic, self.model) {
            model.check(&Nic::read(file).map_err(failure::of_case)?)?;
        }
        let of_model = self.model.map(|model| model.file(project));
        Ok(self.nic.clone().or(of_model))
    }

    /// What says to nextest which tests run. A part of few may have none.
    fn chosen(&self) -> Vec<String> {
        let part = self
            .partition
            .iter()
            .flat_map(|part| ["--no-tests", "pass", "--partition", part].map(str::to_owned));
        part.chain(self.filters.iter().cloned()).collect()
    }
}

/// Runs the tests whose names contain one of the filters (all, without any).
/// Words after `--` go to nextest, such as `-E 'package(cases)'`. With the debug kernel only
/// the cases: the others are about the host and the harness.
///
/// # Errors
///
/// When a test fails or passes only on a retry, none matches, or the guest can't be prepared.
pub(crate) fn run(project: &Project, lock: Locked, options: &Options) -> Result<()> {
    let begun = Instant::now();
    let flavour = project.kernel.flavour();
    if !options.kernels.is_empty() {
        let wanted = matrix::Wanted {
            kernels: &options.kernels,
            nic: options.nic(project)?,
            chosen: options.chosen(),
            may_be_none: options.partition.is_some(),
        };
        return matrix::run(project, lock, &wanted);
    }
    if options.part && flavour != Flavour::Debug {
        bail!("--part is a part of the debug kernel's cases: it wants --debug");
    }
    let way_out = format!(
        "free some space, or remove what was built before: {} clean",
        program::name()
    );
    let has_run = project.target.join("nextest").exists();
    let needed = SPACE[usize::from(has_run)];
    space::require(&project.target, needed, "a run of the tests", &way_out)?;
    let nic = options.nic(project)?;
    let profile = if options.part { part::PROFILE } else { PROFILE };
    let junit = store::junit(project, profile);
    store::forget(&junit)?;
    let too_little = match options.minutes_left {
        Some(left) if options.part => {
            time_left::too_little_with_kernel(project, part::MINUTES, left)?
        }
        _ => None,
    };
    if let Some(reason) = too_little {
        ui::note(&format!("the debug kernel's cases are skipped: {reason}"));
        let nextest = tools::nextest(project)?;
        let list = store::nextest(project, &nextest, Verb::List, profile)?.args(part::CASES);
        return left_out::report(list, &junit, &reason);
    }
    let selftests = wants_selftests(project, &nic, &options.filters)?;
    if selftests {
        packages::install_missing_of_tests(project)?;
        guest::prepare_for_selftests(project)?;
    } else {
        guest::prepare_for_cases(project)?;
    }
    if let Some(file) = &nic {
        let nics = [nic::prepare(project, file, nic::ALL)?];
        let nextest = tools::nextest(project)?;
        drop(lock);
        return on_nics(project, &nextest, &nics, options, begun);
    }
    let nics = match (flavour, options.filters.is_empty()) {
        (Flavour::Plain, true) => committed_nics(project)?,
        _ => Vec::new(),
    };
    let nextest = tools::nextest(project)?;
    // The tests only read what is in the cache.
    drop(lock);
    let mut command = store::nextest(project, &nextest, Verb::Run, profile)?
        .env(vm::ENV, guest::manifest_path(project));
    command = match (flavour, selftests) {
        (Flavour::Debug, _) => command.args(part::CASES),
        (_, false) => command
            .args(["--workspace", "--exclude", KSELFTEST])
            .args(options.without_lab()),
        (_, true) => command
            .arg("--workspace")
            .env(kselftest::ENV, guest::selftests_manifest_path(project))
            .env(THREADS, threads()),
    };
    // Ours have all that a case wants: there none may be skipped.
    let mut skipped = None;
    if kernel::is_built(project)? {
        let (file, with_file) = Skipped::of(command, &project.out(""))?;
        (skipped, command) = (Some(file), with_file);
    }
    let status = command.args(options.chosen()).shown_to_user()?;
    let retries = match junit.exists() {
        true => Some(Retries::read(&junit)?),
        false => None,
    };
    if let Some(retries) = &retries {
        match skipped {
            Some(skipped) => {
                skipped.report(&junit)?;
            }
            None => ui::note(&format!("JUnit XML: {}", junit.display())),
        }
        ui::note(&retries.to_string());
    }
    ui::note(&format!(
        "logs of the machines: {}",
        project.out("vm").display()
    ));
    // These run whatever became of the others: each has something to say.
    let others = on_nics(project, &nextest, &nics, options, begun);
    if !status.success() {
        bail!("tests failed ({status})");
    }
    retries.map_or(Ok(()), |retries| retries.check())?;
    others
}

/// Prepares the guests of the NICs of `harness/nics`; a kernel that the user built need not have the
/// drivers of all.
fn committed_nics(project: &Project) -> Result<Vec<nic::Prepared>> {
    let users = kernel::is_built(project)?;
    let mut nics = Vec::new();
    for (file, wanted) in nic::COMMITTED {
        match nic::prepare(project, &project.root.join(file), wanted) {
            Ok(nic) => nics.push(nic),
            Err(error) if users => ui::note(&format!("{file} is left out: {error:#}")),
            Err(error) => return Err(error),
        }
    }
    Ok(nics)
}

/// Runs the cases on NICs that are described.
///
/// # Errors
///
/// When a case fails, or all are skipped.
fn on_nics(
    project: &Project,
    nextest: &Path,
    nics: &[nic::Prepared],
    options: &Options,
    begun: Instant,
) -> Result<()> {
    let mut failed = Vec::new();
    for nic in nics {
        let minutes = i64::try_from(begun.elapsed().as_secs() / 60)?;
        let chosen = options.chosen();
        if let Some(left) = options.minutes_left {
            if nic.is_left_out(project, nextest, &chosen, left - minutes)? {
                continue;
            }
        }
        let (skipped, command) = nic.run(project, nextest, &chosen)?;
        let status = command.shown_to_user()?;
        let counts = nic.report(project, &skipped)?;
        if counts.ran() == 0 && options.partition.is_none() {
            bail!(
                "no case ran on {}: the filter matched none, or the NIC lacks what they need (above)",
                nic.name()
            );
        }
        if !status.success() {
            failed.push(nic.name());
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("cases failed on {}", failed.join(", ")),
    }
}

/// Whether the kernel's own selftests, or the lab's tests, may be among what runs.
fn wants_selftests(project: &Project, nic: &Option<PathBuf>, filters: &[String]) -> Result<bool> {
    let names = [KSELFTEST, LAB];
    let named = |filter: &String| names.iter().any(|name| filter.contains(name));
    let wanted = nic.is_none() && (filters.is_empty() || filters.iter().any(named));
    if !wanted || project.kernel.flavour() != Flavour::Plain {
        return Ok(false);
    }
    let built = kernel::is_built(project)?;
    if built {
        ui::note("the kernel's own selftests are left out: they want a kernel built for them");
    }
    Ok(!built)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn a_set_of_tests_that_the_user_gives_is_not_joined_with_another() {
        let without_lab = |words: &[&str]| {
            let line = Line::parse_from(["test"].iter().chain(words));
            !line.options.without_lab().is_empty()
        };
        assert!(without_lab(&[]) && without_lab(&["tokens"]));
        assert!(!without_lab(&["--", "-E", "binary(devmem_rx)"]));
        assert!(!without_lab(&["--", "--filterset=test(x)"]));
    }
}
