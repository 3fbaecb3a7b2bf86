// SPDX-License-Identifier: MIT OR Apache-2.0

//! Throughput and progress of a transfer, live: a bar on a terminal, a line
//! for every eighth of it elsewhere.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::stage::Stage;

/// A line is printed for every such part of a transfer, without a terminal.
const PARTS: u64 = 8;

/// A transfer that is going on.
pub(super) struct Transfer {
    name: &'static str,
    started: Instant,
    bar: ProgressBar,
    plain: bool,
    total: u64,
    parts: Cell<u64>,
}

impl Transfer {
    pub(super) fn begin(name: &'static str, total: u64, doing: &str) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = ProgressBar::new(total);
        if plain {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            eprintln!("   {name:12} {doing}");
        }
        let template = "  {prefix:12} [{bar:30}] {bytes:>10}/{total_bytes} {bytes_per_sec:>12} {elapsed} {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name);
        bar.set_message(doing.to_owned());
        Self {
            name,
            started: Instant::now(),
            bar,
            plain,
            total,
            parts: Cell::new(0),
        }
    }

    /// Shows that `bytes` are done.
    pub(super) fn at(&self, bytes: u64) {
        self.bar.set_position(bytes);
        let parts = bytes * PARTS / self.total;
        if self.plain && parts > self.parts.get() {
            self.parts.set(parts);
            eprintln!(
                "   {:12} {:>10} of {}, {}/s",
                self.name,
                HumanBytes(bytes).to_string(),
                HumanBytes(self.total),
                HumanBytes(rate(bytes, self.seconds())),
            );
        }
    }

    pub(super) fn done(self, outcome: &str) -> Stage {
        let seconds = self.seconds();
        self.bar.finish_and_clear();
        eprintln!(
            "=> {:12} {} {outcome} ({seconds:.1} s, {}/s)",
            self.name,
            HumanBytes(self.total),
            HumanBytes(rate(self.total, seconds)),
        );
        Stage {
            name: self.name,
            seconds,
        }
    }

    fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// Bytes per second; only for show.
fn rate(bytes: u64, seconds: f64) -> u64 {
    (bytes as f64 / seconds.max(0.001)) as u64
}
