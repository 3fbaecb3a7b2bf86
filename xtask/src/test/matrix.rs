// SPDX-License-Identifier: MIT OR Apache-2.0

//! The cases on several kernels, and a table of what became of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::skipped::{Counts, Skipped};
use super::store::{self, Verb};
use super::threads::{THREADS, threads};
use super::{nic, part};
use crate::kernel::{KernelArgs, OfSeveral};
use crate::project::{Locked, Project};
use crate::{guest, tools, ui};

/// The nextest profile of `.config/nextest.toml`.
const PROFILE: &str = "kernel";

/// What became of one kernel.
struct Row {
    kernel: String,
    /// `uname -r`, and how many cases did what; or why there were none.
    outcome: Result<(String, Counts)>,
}

/// What a guest of a kernel tests.
struct Guest {
    /// `uname -r`
    release: String,
    /// The NIC, if it is not rigb's as always.
    nic: Option<nic::Prepared>,
}

/// Which cases run.
pub(super) struct Wanted<'a> {
    /// On each of these.
    pub(super) kernels: &'a [String],
    /// On the NIC that this file describes.
    pub(super) nic: Option<PathBuf>,
    /// What says to nextest which of them.
    pub(super) chosen: Vec<String>,
    /// There may be none, as in a part of few.
    pub(super) may_be_none: bool,
}

/// Runs the cases.
///
/// # Errors
///
/// When a case fails, none runs, or a kernel lacks what the driver needs.
pub(super) fn run(project: &Project, lock: Locked, wanted: &Wanted<'_>) -> Result<()> {
    let given = &project.kernel;
    if given.kdir.is_some() || given.kbuild_output.is_some() {
        bail!("--kernel takes the place of KDIR and KBUILD_OUTPUT: unset them");
    }
    if let Some(option) = given.flavour().option() {
        bail!("{option} is a kernel of its own: it can't be used with --kernel");
    }
    let mut projects = Vec::new();
    for (name, args) in named(wanted.kernels)? {
        projects.push((name, Project::open(args)?));
    }
    let nextest = tools::nextest(project)?;
    // All of them first: the tests only read what is in the cache.
    let mut prepared = Vec::new();
    for (name, project) in projects {
        let made = prepare(&project, wanted.nic.as_deref());
        if let Err(error) = &made {
            ui::note(&format!("{name} is not tested: {error:#}"));
        }
        prepared.push((name, project, made));
    }
    drop(lock);

    let mut table = Vec::new();
    for (kernel, project, made) in prepared {
        let outcome = made.and_then(|guest| {
            ui::note(&format!("the cases on {kernel}"));
            let counts = match guest.nic {
                None => on_kernel(&project, &nextest, &kernel, &wanted.chosen)?,
                Some(nic) => {
                    let (skipped, command) = nic.run(&project, &nextest, &wanted.chosen)?;
                    let status = command.shown_to_user()?;
                    checked(status, nic.report(&project, &skipped)?)?
                }
            };
            Ok((guest.release, counts))
        });
        table.push(Row { kernel, outcome });
    }
    println!("{}", Table(&table));
    let good = |counts: &Counts| counts.failed == 0 && (counts.ran() > 0 || wanted.may_be_none);
    let bad = |row: &&Row| !matches!(&row.outcome, Ok((_, counts)) if good(counts));
    match table.iter().filter(bad).count() {
        0 => Ok(()),
        bad => bail!("{bad} of {} kernels did not pass", table.len()),
    }
}

/// Prepares a kernel's guest.
fn prepare(project: &Project, nic: Option<&Path>) -> Result<Guest> {
    let images = guest::prepare_for_cases(project)?;
    let nic = nic.map(|file| nic::prepare(project, file, nic::ALL));
    Ok(Guest {
        release: images.kernel_release,
        nic: nic.transpose()?,
    })
}

/// Runs the cases on a kernel whose guest is prepared.
fn on_kernel(project: &Project, nextest: &Path, name: &str, filters: &[String]) -> Result<Counts> {
    let command = store::nextest(project, nextest, Verb::Run, PROFILE)?
        .args(part::CASES)
        .args(filters)
        .env(vm::ENV, guest::manifest_path(project))
        .env(THREADS, threads());
    let (skipped, command) = Skipped::of(command, &project.out(""))?;
    let written = store::junit(project, PROFILE);
    store::forget(&written)?;
    let junit = written.with_file_name(format!("{name}.xml"));
    let status = command.shown_to_user()?;
    fs::rename(&written, &junit)
        .with_context(|| format!("cargo-nextest left no report ({status})"))?;
    checked(status, skipped.report(&junit)?)
}

/// What failed is in the report, unless cargo-nextest itself did.
fn checked(status: ExitStatus, counts: Counts) -> Result<Counts> {
    match status.success() || counts.failed > 0 {
        true => Ok(counts),
        false => bail!("cargo-nextest failed ({status})"),
    }
}

/// What each kernel is called, and how it is found.
fn named(kernels: &[String]) -> Result<Vec<(String, KernelArgs)>> {
    let mut all: Vec<(String, KernelArgs)> = Vec::new();
    for kernel in kernels {
        let path = PathBuf::from(kernel);
        let (base, kdir, version) = if path.is_dir() {
            let path = path.canonicalize()?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (name.into_owned(), Some(path), None)
        } else if is_version(kernel) {
            (kernel.clone(), None, Some(kernel.clone()))
        } else {
            bail!("--kernel {kernel} is no folder, and no version such as 7.3");
        };
        // Folders of the same name have other parents.
        let mut name = base.clone();
        let mut count = 1;
        while all.iter().any(|(taken, _)| *taken == name) {
            count += 1;
            name = format!("{base}-{count}");
        }
        let args = KernelArgs {
            kdir,
            of_several: Some(OfSeveral {
                name: name.clone(),
                version,
            }),
            ..KernelArgs::default()
        };
        all.push((name, args));
    }
    Ok(all)
}

/// As Debian's packages of kernel sources are named: major and minor.
fn is_version(text: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.')
        .is_some_and(|(major, minor)| number(major) && number(minor))
}

/// A line for each kernel.
struct Table<'a>(&'a [Row]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = |row: &Row| row.kernel.chars().count();
        let name = self.0.iter().map(wide).max().unwrap_or(0).max(6);
        let releases = self.0.iter().filter_map(|row| row.outcome.as_ref().ok());
        let release = releases.map(|(r, _)| r.len()).max().unwrap_or(0).max(7);
        write!(
            f,
            "{:name$}  {:release$}  passed  failed  skipped",
            "kernel", "release"
        )?;
        for Row { kernel, outcome } in self.0 {
            match outcome {
                Ok((uname, counts)) => write!(
                    f,
                    "\n{kernel:name$}  {uname:release$}  {:>6}  {:>6}  {:>7}",
                    counts.passed, counts.failed, counts.skipped
                )?,
                Err(error) => {
                    let text = format!("{error:#}");
                    let mut lines = text.lines();
                    let first = lines.next().unwrap_or_default();
                    write!(f, "\n{kernel:name$}  {:release$}  not tested: {first}", "-")?;
                    for line in lines {
                        write!(f, "\n{:name$}  {:release$}  {}", "", "", line.trim())?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_trees_or_versions_and_have_names_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a/linux"), dir.path().join("b/linux"));
        fs::create_dir_all(&a).unwrap();
        fs::create_dir_all(&b).unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let all = named(&[text(&a), text(&b), "7.3".to_owned()]).unwrap();
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["linux", "linux-2", "7.3"]);
        assert_eq!(all[1].1.kdir, Some(b.canonicalize().unwrap()));
        assert_eq!(all[2].1.kdir, None);
        for bad in ["/no/such", "7", "7.3-rc1"] {
            let error = named(&[bad.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
    }

    #[test]
    fn the_table_says_what_each_kernel_did_or_lacks() {
        let rows = [
            Row {
                kernel: "linux".to_owned(),
                outcome: Ok((
                    "7.3.4".to_owned(),
                    Counts {
                        passed: 170,
                        failed: 1,
                        skipped: 12,
                    },
                )),
            },
            Row {
                kernel: "7.2".to_owned(),
                outcome: Err(anyhow::anyhow!("it lacks:\n  SpinLockIrq")),
            },
        ];
        let expected = "\
kernel  release  passed  failed  skipped
linux   7.3.4       170       1       12
7.2     -        not tested: it lacks:
                 SpinLockIrq";
        assert_eq!(Table(&rows).to_string(), expected);
    }
}
