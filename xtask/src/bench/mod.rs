// SPDX-License-Identifier: MIT OR Apache-2.0

//! `bench`: what the processor does for a byte, by driver and way.

mod measure;
mod profile;
mod scenario;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cache::CacheLock;
use crate::guest;
use crate::project::Project;
use crate::ui::Step;
use profile::Symbols;
use scenario::Extent;

/// What to measure and where to write it.
#[derive(Args)]
pub(crate) struct Options {
    /// Only what CI compares: MTU 9000, 64 KiB
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All message sizes, 4 KiB to 16 MiB; takes long
    #[arg(long)]
    full: bool,
    /// Only rows whose names contain this, such as `rigb, MTU 9000, 64K`
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Size of the measured window
    #[arg(long, value_name = "MIB", default_value_t = 128)]
    window: u64,
    /// Write a profile by function for each row into this folder
    #[arg(long, value_name = "DIR")]
    profile: Option<PathBuf>,
    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures.
///
/// # Errors
///
/// Those of the preparation, and when a row cannot be measured.
pub(crate) fn run(project: &Project, lock: CacheLock, options: &Options) -> Result<()> {
    let images = guest::prepare(project)?;
    // A guest only reads what is in the cache.
    drop(lock);
    let system_map = images
        .symbols
        .clone()
        .context("the kernel's build has no System.map")?;
    let extent = match (options.quick, options.full) {
        (true, _) => Extent::Quick,
        (_, true) => Extent::Full,
        _ => Extent::Usual,
    };
    let mut rows = scenario::rows(extent);
    if let Some(text) = &options.only {
        rows.retain(|row| row.name().contains(text.as_str()));
    }
    if rows.is_empty() {
        bail!("no row has such a name");
    }
    for row in rows {
        let step = Step::begin("bench", &row.name());
        let measured = measure::measure(&images, row, options.window << 20)?;
        let total = measured.window.total();
        let per_byte = |value: u64| value as f64 / measured.sink.window_bytes as f64;
        step.done(&format!(
            "{}: insn/B {:.4} rep/B {:.4} loaded/B {:.3} stored/B {:.3} rtx {} packets {} reads {} frags {} ns {} {:?}",
            row.name(),
            per_byte(total.instructions),
            per_byte(total.reps),
            per_byte(total.accesses.loaded),
            per_byte(total.accesses.stored),
            measured.source.retransmits,
            measured.sink.window_packets,
            measured.sink.window_reads,
            measured.sink.window_fragments,
            measured.sink.window_ns,
            measured.window.ranges,
        ));
        if let Some(dir) = &options.profile {
            let symbols = Symbols::new(&system_map, &measured.modules)?;
            let functions = symbols.profile(&measured.window);
            let text = profile::text(
                &row.name(),
                &functions,
                measured.sink.window_bytes,
                measured.sink.window_packets,
            );
            let name = row.name().replace([' ', ','], "-").replace("--", "-");
            fs::create_dir_all(dir)?;
            fs::write(dir.join(format!("profile-{name}.txt")), text)?;
        }
    }
    Ok(())
}
