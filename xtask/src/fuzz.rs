// SPDX-License-Identifier: MIT OR Apache-2.0

//! A campaign of plans by which our model of the NIC lies to the driver.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use cases::hostile::{Tally, campaign};
use cases::{Driver, Testbed};
use clap::Args;
use indicatif::ProgressBar;
use vm::Images;

use crate::project::{Locked, Project};
use crate::{failure, guest};

/// How many plans, and which.
#[derive(Args)]
pub(crate) struct Options {
    /// How many plans
    #[arg(long, default_value_t = 1000)]
    plans: u64,
    /// The first plan's seed; those of the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write the figures as JSON, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the campaign, and prints what became of the plans.
///
/// # Errors
///
/// When a plan did harm, or a guest can't be booted.
pub(crate) fn run(project: &Project, lock: Locked, options: &Options) -> Result<()> {
    guest::prepare_for_cases(project)?;
    let out = project.out("fuzz");
    fs::create_dir_all(&out).with_context(|| format!("can't create {}", out.display()))?;
    let manifest = guest::prepare_nic(project, &Driver::RigbModel.nic(), &out)?;
    // Guests only read what is in the cache.
    drop(lock);

    let images = Images::load(&manifest)?;
    let bar = ProgressBar::new(options.plans);
    let boot = |name: &str| Testbed::hostile_images(&images, name);
    let tally = campaign(boot, options.seed, options.plans, |_| bar.inc(1));
    bar.finish_and_clear();
    let tally = tally.map_err(failure::of_case)?;
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&tally)?;
        fs::write(path, text + "\n").with_context(|| format!("can't write {}", path.display()))?;
    }
    print(&tally);
    if !tally.is_clean() {
        bail!("{} of {} plans did harm", tally.failures.len(), tally.plans);
    }
    Ok(())
}

fn print(tally: &Tally) {
    for (what, count) in [
        ("plans", tally.plans),
        ("lies that were told", tally.lies),
        ("nothing was lost", tally.unharmed),
        ("recovered by itself", tally.recovered),
        (
            "worked again once the interface was up anew",
            tally.restarted,
        ),
        (
            "worked again once the driver was bound anew",
            tally.detached,
        ),
        ("violations", tally.violations),
        ("panics", tally.panics),
        ("hangs", tally.hangs),
        ("wrong bytes", tally.wrong_bytes),
    ] {
        println!("{count:>10}  {what}");
    }
    for failure in &tally.failures {
        println!(
            "\nseed {}: {}\n{:?}",
            failure.seed, failure.harm, failure.plan
        );
    }
}
