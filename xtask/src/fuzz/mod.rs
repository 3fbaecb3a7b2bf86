// SPDX-License-Identifier: MIT OR Apache-2.0

//! A campaign of plans by which our models of devices lie to their drivers.

mod figures;

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail};
use cases::Driver;
use cases::hostile::{Device, Tally, Target, campaign};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use vm::Images;

use self::figures::{Campaigns, Figures};
use crate::project::{Locked, Project};
use crate::{document, guest};

/// The page with the figures, and they themselves.
const PAGE: &str = "Documentation/reliability.md";
const JSON: &str = "Documentation/reliability.json";

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
}

/// Runs the campaign, and prints what became of the plans.
///
/// # Errors
///
/// When a plan did harm, or not all could be carried out.
pub(crate) fn run(project: &Project, lock: Locked, options: &Options) -> Result<()> {
    guest::prepare_for_cases(project)?;
    let out = project.out("fuzz");
    fs::create_dir_all(&out).with_context(|| format!("can't create {}", out.display()))?;
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
    let bar = bar(options.plans);
    let mut kept = Instant::now();
    let progress = |tally: &Tally| {
        bar.set_position(tally.plans);
        bar.set_message(format!("{} harms", tally.harms()));
        if let Some(path) = options.json.as_ref().filter(|_| kept.elapsed() > KEEP) {
            // The end says why it can't be written.
            let _ = figures(tally).write(path);
            kept = Instant::now();
        }
    };
    let seeds = (options.seed..).take(usize::try_from(options.plans)?);
    let target = Target {
        device,
        images: Some(&images),
    };
    let tally = campaign(target, guests, seeds.collect(), progress);
    bar.finish_and_clear();

    let figures = figures(&tally);
    print!("{}", figures.text());
    if let Some(path) = &options.json {
        figures.write(path)?;
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
        campaigns.write(&project.root.join(JSON))?;
        document::write(project, PAGE, "fuzz", &campaigns.table())?;
    }
    if tally.harms() > 0 {
        bail!("{} of {} plans did harm", tally.harms(), tally.plans);
    }
    Ok(())
}

fn bar(plans: u64) -> ProgressBar {
    let bar = ProgressBar::new(plans);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} plans, {msg}, {eta} left");
    // Without it, the bar has no count of harms.
    style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
}
