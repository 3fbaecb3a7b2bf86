// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the user sees while a step runs: a bar on a terminal, a line every ten
//! seconds elsewhere, and one closing line with the time that the step took.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a step speaks when its output isn't a terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);
/// A step that took less says nothing where output is another's.
const LONG: Duration = Duration::from_secs(2);
static QUIET: AtomicBool = AtomicBool::new(false);
/// The steps that run now: some are done at the same time.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);
/// How wide the name of a step is printed.
const NAME_WIDTH: usize = 12;

/// One step of a command, from its start to [`Step::done`]. Dropping it without
/// that clears its bar: the error that follows says the rest.
pub struct Step {
    name: &'static str,
    started: Instant,
    bar: ProgressBar,
    plain: bool,
    last_spoke: Cell<Instant>,
    detail: RefCell<String>,
    total: Cell<Option<u64>>,
}

impl Step {
    /// Starts a step; `doing` describes it on the terminal.
    pub fn begin(name: &'static str, doing: &str) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = if plain {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
        } else {
            BARS.add(ProgressBar::new_spinner())
        };
        bar.set_style(style("{spinner} {prefix:12} {elapsed} {wide_msg}"));
        bar.set_prefix(name);
        bar.set_message(doing.to_owned());
        if !plain {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self {
            name,
            started: Instant::now(),
            bar,
            plain,
            last_spoke: Cell::new(Instant::now()),
            detail: RefCell::new(doing.to_owned()),
            total: Cell::new(None),
        }
    }

    /// Turns the spinner into a bar of `total` objects (an estimate), of which
    /// an earlier run made `before`.
    pub fn expect_objects(&self, total: u64, before: u64) {
        self.total.set(Some(total));
        self.bar.set_position(before);
        self.bar.set_length(total);
        self.bar.set_style(
            style("{spinner} {prefix:12} {elapsed} [{bar:30}] {pos}/~{len} {wide_msg}")
                .progress_chars("=> "),
        );
    }

    /// Says what is being done now.
    pub fn detail(&self, detail: &str) {
        if self.plain {
            self.detail.replace(detail.to_owned());
            self.speak();
        } else {
            self.bar.set_message(detail.to_owned());
        }
    }

    /// Counts one more object, named `detail`.
    pub fn object(&self, detail: &str) {
        self.bar.inc(1);
        if self.total.get().is_some_and(|t| self.bar.position() > t) {
            self.bar.set_length(self.bar.position());
        }
        self.detail(detail);
    }

    /// How many objects were counted.
    pub fn objects(&self) -> u64 {
        self.bar.position()
    }

    /// Ends the step: prints its name, what came of it and how long it took.
    pub fn done(self, outcome: &str) {
        self.bar.finish_and_clear();
        if QUIET.load(Ordering::Relaxed) && self.started.elapsed() < LONG {
            return;
        }
        say(&format!(
            "=> {:NAME_WIDTH$} {outcome} ({})",
            self.name,
            duration(self.started.elapsed())
        ));
    }

    fn speak(&self) {
        if self.last_spoke.get().elapsed() < PLAIN_INTERVAL {
            return;
        }
        self.last_spoke.set(Instant::now());
        let count = match self.total.get() {
            Some(total) => format!("{} of ~{total} objects, ", self.bar.position().min(total)),
            None => String::new(),
        };
        eprintln!(
            "   {:NAME_WIDTH$} {}, {count}{}",
            self.name,
            duration(self.started.elapsed()),
            self.detail.borrow()
        );
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// From now on only steps that take long say what came of them: the output is a program's.
pub fn quieten() {
    QUIET.store(true, Ordering::Relaxed);
}

/// A line that belongs to no step.
pub fn note(text: &str) {
    say(&format!("   {text}"));
}

/// A line above the bars of the steps that run.
fn say(line: &str) {
    BARS.suspend(|| eprintln!("{line}"));
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// `0.4 s`, `12.0 s`, `5 min 36 s`.
pub fn duration(d: Duration) -> String {
    let seconds = d.as_secs();
    if seconds < 60 {
        format!("{:.1} s", d.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_a_person_writes_them() {
        assert_eq!(duration(Duration::from_millis(440)), "0.4 s");
        assert_eq!(duration(Duration::from_secs(59)), "59.0 s");
        assert_eq!(duration(Duration::from_secs(336)), "5 min 36 s");
        assert_eq!(duration(Duration::from_secs(3605)), "60 min 05 s");
    }
}
