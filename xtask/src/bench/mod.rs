// SPDX-License-Identifier: MIT OR Apache-2.0

//! `bench`: what the processor does for a byte, by driver and way.

mod check;
pub(crate) mod figures;
pub(crate) mod measure;
mod page;
mod parts;
mod profile;
mod readme;
mod restart;
pub(crate) mod scenario;
mod svg;
pub(crate) mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use fs_err as fs;
use provision::files;
use vm::Images;

use crate::document;
use crate::guest;
use crate::kernel::Flavour;
use crate::project::{Locked, Project};
use crate::time_left;
use crate::ui::{self, Step};
use figures::Figure;
use measure::Measurement;
use parts::Parts;
use profile::{Function, Symbols};
use scenario::{Extent, Row, Transfer};

/// Size of a window in MiB. What is in flight at its ends is some MiB.
const WINDOW: u64 = 128;
/// How often committed figures are measured, and those that are compared with them.
const REPEATS: u32 = 3;
/// How often a row that seems worse is measured again.
const MORE_ROUNDS: u32 = 2;

/// How often committed figures of compared rows are measured: streams settle into one of several patterns.
const CHECKED_REPEATS: u32 = 9;
/// What comparing may take where other things run, too.
const CHECK_MINUTES: i64 = 12;

/// The rows that are compared, at MTU 9000, each with a size of reads and writes: those that a change is likely to make
/// worse. They are measured on the kernel that all else runs on.
const CHECKED_ROWS: &[(&str, u32)] = &[
    ("rigb", 64 << 10),
    ("rigb devmem, accelerator", 1 << 20),
    ("rigb devmem, accelerator, 16K", 1 << 20),
    ("rigb zcrx + devmem TX, accelerator, 16K", 64 << 10),
];

/// Rows whose profiles are committed, in [`PROFILES`]: those that `Documentation/performance.md`
/// explains by them.
const PROFILED_ROWS: &[(&str, u32, u32)] = &[
    ("rigb", 1500, 64 << 10),
    ("rigb devmem, accelerator, 16K", 9000, 1 << 20),
    ("rigb zcrx + devmem TX, accelerator, 16K", 9000, 1 << 20),
];
const PROFILES: &str = "Documentation/profiles";

/// What to measure and where to write it.
#[derive(Args)]
pub(crate) struct Options {
    /// Only MTU 9000, 64 KiB
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All rows with all message sizes, 4 KiB to 16 MiB; takes hours
    #[arg(long)]
    full: bool,
    /// Only rows whose names contain this, such as `rigb, MTU 9000, 64K`
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Size of the measured window
    #[arg(long, value_name = "MIB", default_value_t = WINDOW)]
    window: u64,
    /// How often each row is measured; figures are medians
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Write a profile by function for each row into this folder
    #[arg(long, value_name = "DIR")]
    profile: Option<PathBuf>,
    /// Where to write the figures as JSON; target/nobounce/bench/figures.json if not given
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure nothing, and show the figures of such a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["document", "json", "profile"])]
    from: Option<PathBuf>,
    /// Where to write the page with plots; target/nobounce/bench/index.html if not given
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the tables and the committed figures in Documentation/ and the README anew, from three
    /// repeats; rows that --only leaves out stay as they are
    #[arg(long, conflicts_with = "full")]
    document: bool,
}

/// Measures, and prints tables.
///
/// # Errors
///
/// Those of the preparation, and when a row cannot be measured.
pub(crate) fn run(project: &Project, lock: Locked, options: &Options) -> Result<()> {
    if let Some(from) = &options.from {
        let figures: Vec<Figure> = files::read_json(from)?;
        return show(
            project,
            &figures,
            options,
            &format!("Figures of {}", from.display()),
        );
    }
    let extent = match (options.quick, options.full, options.document) {
        (true, ..) => Extent::Quick,
        (_, true, _) => Extent::Full,
        (.., true) => Extent::Document,
        _ => Extent::Usual,
    };
    let kernel = project.kernel.flavour();
    let mut rows = scenario::rows(extent, kernel);
    if let Some(text) = &options.only {
        rows.retain(|row| row.name().contains(text.as_str()));
    }
    if rows.is_empty() {
        bail!("no row of this kernel has such a name: Documentation/performance.md has the names");
    }
    let bench = Bench::prepare(project, lock, true)?;
    let repeat = match options.document {
        true => REPEATS,
        false => options.repeat,
    };
    let profiles = Profiles {
        all: options.profile.clone(),
        committed: options.document.then(|| project.root.join(PROFILES)),
    };
    // Before the profiles make the tree a changed one.
    let versions = versions(project, &bench.images, options.window);
    let figures = bench.measure(&rows, options.window, repeat, &profiles)?;
    let json = output(project, options.json.as_deref(), "figures.json")?;
    check::write(&json, &figures)?;
    ui::note(&format!("figures: {}", json.display()));
    if options.document {
        let committed = check::committed(project);
        let mut old: Vec<Figure> = files::read_json(&committed)?;
        if options.only.is_none() {
            // Those of other kernels stay.
            old.retain(|figure| scenario::kernel_of(&figure.row) != kernel);
        }
        let figures = check::replace_rows(old, &figures);
        check::write(&committed, &figures)?;
        let others = match (&options.only, kernel) {
            (Some(only), _) => format!("; rows without `{only}` are of earlier commits"),
            (_, Flavour::Lean) => "; rows with `clang` are of earlier commits".to_owned(),
            _ => "; rows without `clang` are of earlier commits".to_owned(),
        };
        let text = format!("{versions}{others}.\n\n{}", table::tables(&figures));
        document::write(project, "Documentation/performance.md", "bench", &text)?;
        if let Some(text) = readme::summary(&figures) {
            document::write(project, "README.md", "bench", &text)?;
        }
    }
    show(project, &figures, options, &versions)
}

/// The file that the user named, or one of the project's.
fn output(project: &Project, named: Option<&Path>, name: &str) -> Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let dir = project.out("bench");
    fs::create_dir_all(&dir)?;
    Ok(dir.join(name))
}

/// What was measured with.
fn versions(project: &Project, images: &Images, window: u64) -> String {
    format!(
        "Commit {}, Linux {}, QEMU {}; windows of {window} MiB",
        document::commit(project),
        images.kernel_release,
        images.qemu.version
    )
}

/// Prints tables and writes the page.
fn show(project: &Project, figures: &[Figure], options: &Options, versions: &str) -> Result<()> {
    let path = output(project, options.html.as_deref(), "index.html")?;
    fs::write(&path, page::page(figures, versions))?;
    ui::note(&format!("page: {}", path.display()));
    println!("\n{}", table::tables(figures));
    Ok(())
}

/// What to do with the figures that are compared.
#[derive(Args)]
pub(crate) struct CheckOptions {
    /// Skip it if it may take longer than this
    #[arg(long, value_name = "MINUTES", allow_negative_numbers = true)]
    minutes_left: Option<i64>,
    /// Measure the committed figures again, and compare nothing
    #[arg(long, conflicts_with = "minutes_left")]
    document: bool,
}

/// Measures what is quick, and compares it with the committed figures.
///
/// # Errors
///
/// Those of [`run`], and when a figure got worse.
pub(crate) fn compare(project: &Project, lock: Locked, options: &CheckOptions) -> Result<()> {
    let left = options.minutes_left;
    if let Some(reason) = left.and_then(|left| time_left::too_little(CHECK_MINUTES, left)) {
        ui::note(&format!("the committed figures are not compared: {reason}"));
        return Ok(());
    }
    let committed = check::compared(project);
    let bench = Bench::prepare(project, lock, false)?;
    if options.document {
        let figures = bench.measure(
            &checked_rows(),
            WINDOW,
            CHECKED_REPEATS,
            &Profiles::default(),
        )?;
        return check::write(&committed, &check::compared_of(figures));
    }
    let old: Vec<Figure> = files::read_json(&committed)?;
    let mut figures = Vec::new();
    for row in &checked_rows() {
        let measure = || bench.repeats(row, WINDOW, REPEATS, &Profiles::default());
        let mut repeats = measure()?;
        let mut measured = figures::medians(repeats.clone());
        // The streams may have settled into a costly pattern, which does not stay.
        for _ in 0..MORE_ROUNDS {
            if !check::is_worse(&old, &measured) {
                break;
            }
            ui::note("worse than committed: measured as often again");
            repeats.extend(measure()?);
            measured = figures::medians(repeats.clone());
        }
        figures.extend(measured);
    }
    check::compare(&old, &figures)
}

fn checked_rows() -> Vec<Row> {
    let mut rows = scenario::rows(Extent::Usual, Flavour::Lean);
    rows.retain(|row| match row {
        Row::Transfer(Transfer { scenario, mtu, io }) => {
            *mtu == scenario::FIRST.0 && CHECKED_ROWS.contains(&(scenario.name, *io))
        }
        Row::Restart => false,
    });
    rows
}

/// Folders for profiles by function.
#[derive(Default)]
struct Profiles {
    /// For those of all rows.
    all: Option<PathBuf>,
    /// For those of [`PROFILED_ROWS`].
    committed: Option<PathBuf>,
}

/// What every row needs.
struct Bench {
    images: Images,
    system_map: PathBuf,
    parts: Parts,
}

impl Bench {
    fn prepare(project: &Project, lock: Locked, by_part: bool) -> Result<Self> {
        let images = guest::prepare(project)?;
        // A guest only reads what is in the cache.
        drop(lock);
        let system_map = images.symbols.clone();
        let system_map = system_map.context("the kernel's build has no System.map")?;
        let build = system_map.parent().unwrap_or(Path::new("/"));
        // That of the cases has no object files any more.
        let parts = match by_part {
            true => {
                let step = Step::begin("symbols", "reading the kernel's object files");
                let parts = Parts::read(build)?;
                step.done("functions by part of the kernel");
                parts
            }
            false => Parts::default(),
        };
        Ok(Self {
            images,
            system_map,
            parts,
        })
    }

    fn measure(
        &self,
        rows: &[Row],
        window: u64,
        repeat: u32,
        profiles: &Profiles,
    ) -> Result<Vec<Figure>> {
        let mut all = Vec::new();
        for row in rows {
            all.extend(figures::medians(
                self.repeats(row, window, repeat, profiles)?,
            ));
        }
        Ok(all)
    }

    fn repeats(
        &self,
        row: &Row,
        window: u64,
        repeat: u32,
        profiles: &Profiles,
    ) -> Result<Vec<Vec<Figure>>> {
        let repeat = if row.repeats() { repeat } else { 1 };
        (0..repeat)
            .map(|_| self.measure_once(row, window, profiles))
            .collect()
    }

    fn measure_once(&self, row: &Row, window: u64, profiles: &Profiles) -> Result<Vec<Figure>> {
        let step = Step::begin("bench", &row.name());
        let (figures, summary) = match row {
            Row::Transfer(transfer) => self.transfer(*transfer, window, profiles)?,
            Row::Restart => {
                let measured = restart::measure(&self.images).context("restarting a queue")?;
                let figures = figures::of_restarts(&measured);
                let told = figures.iter().map(|f| format!("{} {}", f.figure, f.value));
                let summary = told.collect::<Vec<_>>().join(", ");
                (figures, format!("{}: {summary}", row.name()))
            }
        };
        step.done(&summary);
        Ok(figures)
    }

    fn transfer(
        &self,
        row: Transfer,
        window: u64,
        profiles: &Profiles,
    ) -> Result<(Vec<Figure>, String)> {
        let measured = measure::measure(&self.images, row, window << 20)?;
        let symbols = Symbols::new(&self.system_map, &measured.modules)?;
        symbols.require(figures::COUNTED)?;
        let functions = symbols.profile(&measured.window);
        self.write_profiles(profiles, &measured, &functions)?;
        if measured.sink.window_retransmits > 0 {
            ui::note(
                "segments were sent again in the window: the figures may be those of a disturbed stream",
            );
        }
        let figures = figures::figures(&measured, &functions, &self.parts);
        Ok((figures, summary(&measured)))
    }

    fn write_profiles(
        &self,
        profiles: &Profiles,
        measured: &Measurement,
        functions: &[Function],
    ) -> Result<()> {
        let row = &measured.row;
        let committed = PROFILED_ROWS.contains(&(row.scenario.name, row.mtu, row.io));
        let committed = profiles.committed.as_deref().filter(|_| committed);
        for (dir, least) in [(profiles.all.as_deref(), 0.001), (committed, 0.01)] {
            let Some(dir) = dir else { continue };
            let text = profile::text(&row.name(), functions, &measured.sink, least, |function| {
                self.parts.of(function)
            });
            let file = row.name().replace(" + ", "-").replace(", ", "-");
            let path = dir.join(format!("profile-{}.txt", file.replace(' ', "-")));
            fs::create_dir_all(dir)?;
            fs::write(&path, text)?;
        }
        Ok(())
    }
}

/// A row in a line.
fn summary(measured: &Measurement) -> String {
    if measured.wire.is_some() {
        let seconds = measured.sink.window_ns as f64 / 1e9;
        let megabits = measured.sink.window_bytes as f64 * 8.0 / 1e6 / seconds;
        return format!("{}: {megabits:.3} Mbit/s", measured.row.name());
    }
    let total = measured.window.total();
    let per_byte = |value: u64| value as f64 / measured.sink.window_bytes as f64;
    format!(
        "{}: insn/B {:.3} + rep {:.3}, loaded/B {:.2}, stored/B {:.2}",
        measured.row.name(),
        per_byte(total.instructions),
        per_byte(total.reps),
        per_byte(total.accesses.loaded),
        per_byte(total.accesses.stored),
    )
}
