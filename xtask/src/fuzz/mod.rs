// SPDX-License-Identifier: MIT OR Apache-2.0

//! A campaign of plans by which our models of devices lie to their drivers.

mod figures;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use cases::Driver;
use cases::hostile::{Device, Tally, Target, campaign, corpus_line};
use clap::{Args, ValueEnum};
use fs_err as fs;
use provision::files;
use vm::Images;

use self::figures::{Campaigns, Figures};
use crate::project::{Locked, Project};
use crate::ui::Step;
use crate::{document, guest};

/// The page with the figures, and they themselves.
const PAGE: &str = "Documentation/reliability.md";
const JSON: &str = "Documentation/reliability.json";
/// Plans that are carried out again.
const CORPUS: &str = "harness/cases/corpus/plans.txt";

/// Guests at once, for each processor: a plan takes a third of a second of it, and three to come through.
const GUESTS: usize = 10;
/// For so few plans it is not worth to boot one more.
const WORTH: u64 = 5;

/// How often what there is of the figures is written, for a campaign that is interrupted.
const KEEP: Duration = Duration::from_secs(30);

/// What lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Liar {
    /// Our model of the 82576
    Nic,
    /// An accelerator's engine
    Engine,
}

impl From<Liar> for Device {
    fn from(liar: Liar) -> Self {
        match liar {
            Liar::Nic => Self::Nic,
            Liar::Engine => Self::Engine,
        }
    }
}

/// How many plans, and which.
#[derive(Args)]
pub(crate) struct Options {
    /// Which device lies
    #[arg(long, value_enum, default_value_t = Liar::Nic)]
    device: Liar,
    /// How many plans; one is printed, too
    #[arg(long, default_value_t = 1000)]
    plans: u64,
    /// The first plan's seed; those of the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many guests run at once, with a GiB of memory each [default: 10 for each processor, and no
    /// more than one for 5 plans]
    #[arg(long)]
    guests: Option<usize>,
    /// Write the figures as JSON, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures to Documentation/reliability.json and into reliability.md, beside those of other
    /// devices and kernels
    #[arg(long)]
    document: bool,
    /// Add plans that do harm on their own to harness/cases/corpus/plans.txt, which `make test` carries out
    #[arg(long)]
    keep: bool,
}

/// Runs the campaign, and prints what became of the plans.
///
/// # Errors
///
/// When a plan did harm, or not all could be carried out.
pub(crate) fn run(project: &Project, lock: Locked, options: &Options) -> Result<()> {
    guest::prepare_for_cases(project)?;
    let out = project.out("fuzz");
    fs::create_dir_all(&out)?;
    let manifest = guest::prepare_nic(project, &Driver::RigbModel.nic(), &out)?;
    // Guests only read what is in the cache.
    drop(lock);

    let device = Device::from(options.device);
    if options.plans == 1 {
        for lie in device.plan(options.seed).lies {
            println!("{lie}");
        }
    }
    let images = Images::load(&manifest)?;
    let guests = options.guests.unwrap_or_else(|| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let worth = usize::try_from(options.plans / WORTH).unwrap_or(usize::MAX);
        worth.clamp(1, GUESTS * processors)
    });
    let commit = document::commit(project);
    let begun = Instant::now();
    let figures = |tally: &Tally| Figures {
        device,
        commit: commit.clone(),
        kernel: images.kernel_release.clone(),
        flavour: format!("{:?}", project.kernel.flavour()).to_lowercase(),
        qemu: images.qemu.version.to_string(),
        seed: options.seed,
        guests,
        seconds: begun.elapsed().as_secs(),
        tally: tally.clone(),
    };
    let step = Step::begin("fuzz", "booting guests");
    step.expect("{pos} of {len} plans", options.plans, 0);
    let mut kept = Instant::now();
    let progress = |tally: &Tally| {
        step.reach(tally.plans, &format!("{} harms", tally.harms()));
        if let Some(path) = options.json.as_ref().filter(|_| kept.elapsed() > KEEP) {
            // The end says why it can't be written.
            let _ = files::write_json(path, &figures(tally));
            kept = Instant::now();
        }
    };
    let seeds = (options.seed..).take(usize::try_from(options.plans)?);
    let target = Target {
        device,
        images: Some(&images),
    };
    let tally = campaign(target, guests, seeds.collect(), progress);
    let of_all = format!("{} of {} plans", tally.plans, tally.wanted);
    step.done(&format!("{of_all}, {} harms", tally.harms()));

    let figures = figures(&tally);
    print!("{}", figures.text());
    if let Some(path) = &options.json {
        files::write_json(path, &figures)?;
    }
    if options.keep {
        keep(&project.root.join(CORPUS), device, &tally)?;
    }
    if let Some(why) = &tally.stopped {
        bail!(
            "{} of {} plans were carried out: {why}",
            tally.plans,
            tally.wanted
        );
    }
    if options.document {
        let campaigns = Campaigns::read(&project.root.join(JSON))?.with(figures);
        files::write_json(&project.root.join(JSON), &campaigns)?;
        document::write(project, PAGE, "fuzz", &campaigns.table())?;
    }
    if tally.harms() > 0 {
        bail!("{} of {} plans did harm", tally.harms(), tally.plans);
    }
    Ok(())
}

/// Adds to the corpus what did harm alone, and is not there yet.
fn keep(corpus: &Path, device: Device, tally: &Tally) -> Result<()> {
    let mut text = fs::read_to_string(corpus)?;
    for failure in &tally.failures {
        let [seed] = failure.seeds[..] else {
            continue;
        };
        let begin = format!("{device} {seed} ");
        if !text.lines().any(|line| line.starts_with(&begin)) {
            text += &corpus_line(device, seed, &failure.harm);
            text.push('\n');
        }
    }
    Ok(fs::write(corpus, text)?)
}

#[cfg(test)]
mod tests {
    use cases::hostile::Failure;

    use super::*;

    #[test]
    fn what_does_harm_alone_is_kept_once() {
        let dir = tempfile::tempdir().unwrap();
        let corpus = dir.path().join("plans.txt");
        fs::write(&corpus, "# Plans.\nnic 1 stuck,stuck it hung\n").unwrap();
        let failure = |seeds: &[u64]| Failure {
            seeds: seeds.to_vec(),
            harm: "the guest\ndid not answer".to_owned(),
            plan: None,
        };
        let tally = Tally {
            failures: [&[1][..], &[2], &[3, 4]].map(failure).to_vec(),
            ..Tally::default()
        };
        for _ in 0..2 {
            keep(&corpus, Device::Nic, &tally).unwrap();
        }
        let text = fs::read_to_string(&corpus).unwrap();
        let kept = corpus_line(Device::Nic, 2, "the guest did not answer");
        assert_eq!(
            text,
            format!("# Plans.\nnic 1 stuck,stuck it hung\n{kept}\n")
        );
    }
}
