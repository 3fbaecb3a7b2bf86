// SPDX-License-Identifier: MIT OR Apache-2.0

//! `kselftest`: the kernel's own driver selftests, unmodified.

pub(crate) mod image;
mod root;
mod table;

use std::path::PathBuf;

use anyhow::Result;
use cases::Driver;
use clap::{Args, ValueEnum};
use kselftest::{Outcome, Test, read};
use vm::Images;

use crate::document;
use crate::guest;
use crate::project::{Locked, Project};
use crate::ui::Step;

/// What to run and where to write it.
#[derive(Args)]
pub(crate) struct Options {
    /// The driver of both NICs; those of -model are on our model of the NIC
    #[arg(long, value_enum, default_value_t = DriverName::Rigb, conflicts_with = "document")]
    driver: DriverName,
    /// Run tests, too, that need what the emulated NIC does not have
    #[arg(long)]
    all: bool,
    /// Write the results as JSON: test, case, result, reason, driver
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run all tests with all drivers, and write their results to Documentation/
    /// anew; with tests named, only theirs
    #[arg(long)]
    document: bool,
    /// Run nothing, and take the results of such files
    #[arg(long, value_name = "FILE", conflicts_with = "tests")]
    from: Vec<PathBuf>,
    /// Only these tests, such as `ping`
    #[arg(value_name = "TEST")]
    tests: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DriverName {
    Rigb,
    RigbModel,
    Igb,
    IgbModel,
}

impl From<DriverName> for Driver {
    fn from(name: DriverName) -> Self {
        match name {
            DriverName::Rigb => Self::Rigb,
            DriverName::RigbModel => Self::RigbModel,
            DriverName::Igb => Self::Igb,
            DriverName::IgbModel => Self::IgbModel,
        }
    }
}

/// Runs tests, a line for each, and compares them with the committed results or updates those.
///
/// # Errors
///
/// Those of the preparation, and when a sub-case does not pass that is said to.
pub(crate) fn run(project: &Project, lock: Locked, options: &Options) -> Result<()> {
    let all = options.all || options.document;
    let tests = kselftest::choose(&options.tests, all, options.driver.into())?;
    // Before its results make the tree a changed one.
    let commit = document::commit(project);
    let images = guest::prepare_for_selftests(project)?;
    // The guests only read what is in the cache.
    drop(lock);
    let drivers = match options.document {
        true => DriverName::value_variants()
            .iter()
            .map(|&name| name.into())
            .collect(),
        false => vec![options.driver.into()],
    };
    let mut outcomes = Vec::new();
    for file in &options.from {
        outcomes.extend(read(file)?);
    }
    let runs = tests.iter().filter(|_| options.from.is_empty());
    for test in runs {
        for driver in &drivers {
            outcomes.extend(run_one(&images, *driver, *test));
            if let Some(path) = &options.json {
                kselftest::write(path, &outcomes)?;
            }
        }
    }
    println!("{}", table::counts(outcomes.iter()));
    let committed = committed(project);
    let old = match committed.is_file() {
        true => read(&committed)?,
        false => Vec::new(),
    };
    if !options.document {
        return Ok(kselftest::compare(&old, &outcomes)?);
    }
    let all = kselftest::replace(old, &outcomes);
    kselftest::write(&committed, &all)?;
    // Files don't say what their results are of.
    let commit = match options.from.is_empty() && options.tests.is_empty() {
        true => commit,
        false => format!("{commit}, and earlier ones for some tests"),
    };
    let text = format!(
        "Commit {commit}, Linux {}, QEMU {}.\n\n{}",
        images.kernel_release,
        images.qemu.version,
        table::tables(&all)
    );
    document::write(project, "Documentation/selftests.md", "kselftest", &text)
}

/// The committed results.
fn committed(project: &Project) -> PathBuf {
    project.root.join("Documentation/selftests.json")
}

fn run_one(images: &Images, driver: Driver, test: Test) -> Vec<Outcome> {
    let step = Step::begin("kselftest", &format!("{} on {}", test.name, driver.name()));
    let report = kselftest::run(images, driver, test, &mut |line| {
        step.detail(&format!("{}: {line}", test.name));
    });
    step.done(&format!(
        "{} on {}: {}",
        test.name,
        driver.name(),
        table::counts(report.outcomes.iter())
    ));
    report.outcomes
}
