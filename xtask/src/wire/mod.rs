// SPDX-License-Identifier: MIT OR Apache-2.0

//! `wire`: goodput on our model's wires, and what becomes of a stream on a bad one.

mod figures;
mod placement;
mod stream;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use cases::Driver;
use clap::Args;
use provision::files;
use vm::{Images, Link};

use self::figures::{Figures, Goodput, Models, Placement, Repeats};
use self::stream::{Extent, Kind, Passed, boot, pass};
use crate::bench::figures::ceiling;
use crate::failure::of_case as error;
use crate::project::{Locked, Project};
use crate::ui::Step;
use crate::{document, guest};

/// The page and its figures.
const PAGE: &str = "Documentation/wire.md";
const JSON: &str = "Documentation/wire.json";

/// Rate of the wires in bits per second: a guest of one emulated processor keeps them busy, also where it has
/// to wait for its host now and then.
const RATE: u64 = 10_000_000;
/// How long a frame is on its way over a wire that loses or reorders.
const DELAY: Duration = Duration::from_millis(20);
/// The same where the place of bytes is looked at.
const SHORT_DELAY: Duration = Duration::from_millis(2);
/// MTU over those that lose or reorder.
const BAD_MTU: u32 = 1500;
/// How often all is measured.
const REPEATS: u64 = 3;

const MTUS: [u32; 4] = [1500, 4096, 8244, 9000];
/// Parts of a million that are lost or reordered.
const LOSSES: [u32; 5] = [0, 10, 100, 1000, 10_000];
const REORDERINGS: [u32; 2] = [1000, 10_000];
/// MTU and bytes of a receive buffer.
const PLACEMENTS: [(u32, u32); 5] = [
    (1500, 4 << 10),
    (1500, 16 << 10),
    (8244, 4 << 10),
    (9000, 4 << 10),
    (9000, 16 << 10),
];
/// Losses and reorderings.
const DISORDERS: [(u32, u32); 5] = [(0, 0), (1000, 0), (10_000, 0), (0, 1000), (0, 10_000)];

const MIB: u64 = 1 << 20;
/// Over a wire with a rate.
const PACED: Extent = Extent {
    before: 3 * MIB,
    window: 8 * MIB,
    after: 2 * MIB,
};
/// Over one that loses: from the first read to the end, as what is lost comes late.
const IMPAIRED: Extent = Extent {
    before: 1,
    window: 4 * MIB,
    after: 64 << 10,
};
/// On both models.
const SAME: Extent = Extent {
    before: 4 * MIB,
    window: 64 * MIB,
    after: 8 * MIB,
};

/// What to measure, and where to write it.
#[derive(Args)]
pub(crate) struct Options {
    /// Write the figures as JSON, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only this part
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Measure nothing, and take the figures of such files
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "json"])]
    from: Vec<PathBuf>,
    /// How often all is measured; figures are medians
    #[arg(long, value_name = "N", default_value_t = REPEATS, value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    /// Write the figures and tables in Documentation/ anew; parts that --only leaves out stay as they are
    #[arg(long)]
    document: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Wires with a rate
    Paced,
    /// Wires that lose and reorder
    Impaired,
    /// QEMU's model beside ours
    Models,
    /// Where payload lies
    Placements,
}

/// Measures, and prints tables.
///
/// # Errors
///
/// Those of the preparation, and when a stream does not go its way.
pub(crate) fn run(project: &Project, lock: Locked, options: &Options) -> Result<()> {
    if !options.from.is_empty() {
        let mut figures = Figures::default();
        for file in &options.from {
            figures.fill(files::read_json(file)?);
        }
        return show(project, figures, options);
    }
    let commit = document::commit(project);
    let images = guest::prepare_for_cases(project)?;
    // Guests only read what is in the cache.
    drop(lock);

    let bench = Bench {
        images: &images,
        repeat: options.repeat,
    };
    let mut figures = Figures {
        versions: format!(
            "Commit {commit}, Linux {}, QEMU {}",
            images.kernel_release, images.qemu.version
        ),
        ..Figures::default()
    };
    let wanted = |part| options.only.is_empty() || options.only.contains(&part);
    if wanted(Part::Paced) {
        figures.paced = bench.paced()?;
    }
    if wanted(Part::Impaired) {
        figures.impaired = bench.impaired()?;
    }
    if wanted(Part::Models) {
        figures.models = bench.models()?;
    }
    if wanted(Part::Placements) {
        figures.placements = bench.placements()?;
    }
    if let Some(path) = &options.json {
        files::write_json(path, &figures)?;
    }
    show(project, figures, options)
}

/// Prints the tables, and writes them.
fn show(project: &Project, mut figures: Figures, options: &Options) -> Result<()> {
    if options.document {
        let committed = project.root.join(JSON);
        if committed.is_file() {
            figures.fill(files::read_json(&committed)?);
        }
        files::write_json(&committed, &figures)?;
        document::write(project, PAGE, "wire", &table::tables(&figures))?;
    }
    println!("\n{}", table::tables(&figures));
    Ok(())
}

struct Bench<'a> {
    images: &'a Images,
    repeat: u64,
}

impl Bench<'_> {
    fn paced(&self) -> Result<Vec<Goodput>> {
        let kinds = [Kind::Copied, Kind::Devmem, Kind::Zcrx];
        let link = Link {
            rate: Some(RATE),
            ..Link::default()
        };
        let mut all = Vec::new();
        for mtu in MTUS {
            let step = Step::begin("wire", &format!("a paced wire, MTU {mtu}"));
            let mut reports = vec![Vec::new(); kinds.len()];
            for _ in 0..self.repeat {
                let bed = boot(
                    self.images,
                    "wire-paced",
                    Driver::RigbModel,
                    mtu,
                    Some(link),
                )?;
                for (kind, reports) in kinds.into_iter().zip(&mut reports) {
                    reports.push(pass(&bed, mtu, kind, PACED)?);
                }
                bed.finish().map_err(error)?;
            }
            let rows = kinds.into_iter().zip(&reports);
            let rows: Vec<_> = rows
                .map(|(kind, reports)| goodput(mtu, kind, link, reports))
                .collect();
            let shares = rows.iter().map(|row| row.share.to_string());
            let shares = shares.collect::<Vec<_>>().join(", ");
            step.done(&format!("a paced wire, MTU {mtu}: {shares} of the ceiling"));
            all.extend(rows);
        }
        Ok(all)
    }

    /// Each repeat has a guest of its own, whose frames meet another fate: the same for all ways.
    fn impaired(&self) -> Result<Vec<Goodput>> {
        let mut all = Vec::new();
        let losses = LOSSES.map(|loss| (loss, 0));
        let reorderings = REORDERINGS.map(|reordering| (0, reordering));
        for (loss_ppm, reorder_ppm) in losses.into_iter().chain(reorderings) {
            for kind in [Kind::Copied, Kind::Devmem] {
                let doing = format!(
                    "{}, {loss_ppm} ppm lost, {reorder_ppm} ppm reordered",
                    kind.name()
                );
                let step = Step::begin("wire", &doing);
                let link = |seed| Link {
                    rate: Some(RATE),
                    delay: DELAY,
                    loss_ppm,
                    reorder_ppm,
                    seed,
                    ..Link::default()
                };
                let mut reports = Vec::new();
                for seed in 0..self.repeat {
                    let link = Some(link(seed));
                    let bed = boot(self.images, "wire-bad", Driver::RigbModel, BAD_MTU, link)?;
                    let passed =
                        pass(&bed, BAD_MTU, kind, IMPAIRED).with_context(|| doing.clone())?;
                    bed.finish().map_err(error)?;
                    reports.push(passed);
                }
                let row = goodput(BAD_MTU, kind, link(0), &reports);
                step.done(&format!("{doing}: {} of the ceiling", row.share));
                all.push(row);
            }
        }
        Ok(all)
    }

    /// One model after the other, so that what else the machine does concerns both.
    fn models(&self) -> Result<Vec<Models>> {
        let kinds = [Kind::Ordinary, Kind::Devmem];
        let mut all = Vec::new();
        for mtu in [1500, 9000] {
            let step = Step::begin("wire", "our model beside QEMU's");
            // For each of what is timed, and each repeat: ours, QEMU's.
            let mut times = vec![Vec::new(); kinds.len() + 1];
            for _ in 0..self.repeat {
                let ours = self.time(Driver::RigbModel, mtu, &kinds)?;
                let igb = self.time(Driver::Rigb, mtu, &kinds)?;
                for (times, pair) in times.iter_mut().zip(ours.into_iter().zip(igb)) {
                    times.push(pair);
                }
            }
            let names = kinds.iter().map(|kind| kind.name()).chain(["boot"]);
            for (what, times) in names.zip(times) {
                let of =
                    |time: fn(&(f64, f64)) -> f64| Repeats::new(times.iter().map(time).collect());
                all.push(Models {
                    mtu,
                    what: what.to_owned(),
                    ours: of(|(ours, _)| *ours),
                    igb: of(|(_, igb)| *igb),
                    ratio: of(|(ours, igb)| igb / ours),
                });
            }
            step.done(&format!("our model beside QEMU's, MTU {mtu}"));
        }
        Ok(all)
    }

    /// Seconds that each transfer takes, and the boot.
    fn time(&self, driver: Driver, mtu: u32, kinds: &[Kind]) -> Result<Vec<f64>> {
        let bed = boot(self.images, "wire-models", driver, mtu, None)?;
        let mut times = Vec::new();
        for kind in kinds {
            let sink = pass(&bed, mtu, *kind, SAME)?.sink;
            // A window ends a little late.
            let per_byte = sink.window_ns as f64 / 1e9 / sink.window_bytes.max(1) as f64;
            times.push(per_byte * SAME.window as f64);
        }
        times.push(bed.guest.boot_time().as_secs_f64());
        bed.finish().map_err(error)?;
        Ok(times)
    }

    fn placements(&self) -> Result<Vec<Placement>> {
        let mut all = Vec::new();
        for (mtu, buffer) in PLACEMENTS {
            for (loss_ppm, reorder_ppm) in DISORDERS {
                let doing = format!(
                    "placement, MTU {mtu}, {buffer}, {loss_ppm} ppm lost, {reorder_ppm} ppm reordered"
                );
                let step = Step::begin("wire", &doing);
                // Without a rate: frames must come soon to overtake another.
                let link = Link {
                    delay: SHORT_DELAY,
                    loss_ppm,
                    reorder_ppm,
                    seed: 1,
                    ..Link::default()
                };
                let found = placement::measure(self.images, mtu, buffer, link);
                let found = found.with_context(|| doing.clone())?;
                step.done(&format!(
                    "{doing}: {:.4} of pairs, {:.4} in runs",
                    found[0].pairs, found[0].in_runs
                ));
                all.extend(found);
            }
        }
        Ok(all)
    }
}

/// What came over a link in some repeats.
fn goodput(mtu: u32, kind: Kind, link: Link, reports: &[Passed]) -> Goodput {
    let rate = link.rate.unwrap_or(u64::MAX);
    let most = rate as f64 * ceiling(mtu);
    let goodput = |passed: &Passed| {
        let sink = &passed.sink;
        sink.window_bytes as f64 * 8e9 / sink.window_ns.max(1) as f64
    };
    let of = |figure: &dyn Fn(&Passed) -> f64| Repeats::new(reports.iter().map(figure).collect());
    Goodput {
        mtu,
        way: kind.name().to_owned(),
        rate,
        delay_us: link.delay.as_micros() as u64,
        loss_ppm: link.loss_ppm,
        reorder_ppm: link.reorder_ppm,
        goodput: of(&goodput),
        share: of(&|passed| goodput(passed) / most),
        sent_again: of(&|passed| passed.sink.window_retransmits as f64),
        busy: of(&|passed| passed.busy),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_page_says_what_the_committed_figures_are() {
        let root = crate::project::root().unwrap();
        let figures: Figures = files::read_json(&root.join(JSON)).unwrap();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        let tables = table::tables(&figures);
        assert!(
            page.contains(tables.trim_end()),
            "`cargo xtask wire --document` did not write this:\n{tables}"
        );
    }

    #[test]
    fn the_committed_figures_are_of_a_driver_that_uses_the_whole_wire() {
        let figures: Figures =
            files::read_json(&crate::project::root().unwrap().join(JSON)).unwrap();
        let mtus = [1500, 4096, 8244, 9000];
        for (mtu, way) in mtus.iter().flat_map(|mtu| [(mtu, "devmem"), (mtu, "zcrx")]) {
            let mut paced = figures.paced.iter();
            let row = paced.find(|row| row.mtu == *mtu && row.way == way);
            let share = row.map(|row| row.share.median);
            assert!(share >= Some(0.995), "MTU {mtu}, {way}: {share:?}");
        }
    }
}
