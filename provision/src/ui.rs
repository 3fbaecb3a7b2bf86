// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the user sees while a step runs: a bar on a terminal; elsewhere a line after a second, and
//! then every ten; and one closing line with the time that the step took.

use std::convert::Infallible;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A step that takes longer says what it does, even where output is another's.
const LONG: Duration = Duration::from_secs(1);
/// How often it speaks from then on when its output isn't a terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);
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
    /// How the bar's position is said.
    count: Arc<Mutex<Option<String>>>,
    /// Dropping it ends the thread that speaks.
    speaking: Option<Sender<Infallible>>,
}

impl Step {
    /// Starts a step; `doing` says what it does.
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
        let started = Instant::now();
        let count = Arc::default();
        let speaking = plain.then(|| {
            let (speaking, ended) = mpsc::channel();
            let (bar, count) = (bar.clone(), Arc::clone(&count));
            thread::spawn(move || speak(name, started, &bar, &count, &ended));
            speaking
        });
        Self {
            name,
            started,
            bar,
            count,
            speaking,
        }
    }

    /// Turns the spinner into a bar of `total` objects (an estimate), of which
    /// an earlier run made `before`.
    pub fn expect_objects(&self, total: u64, before: u64) {
        self.expect("{pos} of ~{len} objects", total, before);
    }

    /// Turns the spinner into a bar of `total` of something, counted by [`Self::reach`] as `count` says.
    pub fn expect(&self, count: &str, total: u64, before: u64) {
        self.bar.set_position(before);
        self.bar.set_length(total);
        let bar = "{spinner} {prefix:12} {elapsed} [{bar:30}]";
        let style = style(&format!("{bar} {count}, {{wide_msg}}"));
        self.bar.set_style(style.progress_chars("=> "));
        *lock(&self.count) = Some(count.to_owned());
    }

    /// Says how many there are now, and what is to be known of them.
    pub fn reach(&self, position: u64, detail: &str) {
        self.bar.set_position(position);
        self.detail(detail);
    }

    /// Says what is being done now.
    pub fn detail(&self, detail: &str) {
        self.bar.set_message(detail.to_owned());
    }

    /// Counts one more object, named `detail`.
    pub fn object(&self, detail: &str) {
        self.bar.inc(1);
        let objects = self.objects();
        if self.bar.length().is_some_and(|total| objects > total) {
            self.bar.set_length(objects);
        }
        self.detail(detail);
    }

    /// How many objects were counted.
    pub fn objects(&self) -> u64 {
        self.bar.position()
    }

    /// Ends the step: prints its name, what came of it and how long it took.
    pub fn done(mut self, outcome: &str) {
        self.speaking.take();
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
}

/// Says what a step does, until `ended` has no sender any more.
fn speak(
    name: &str,
    started: Instant,
    bar: &ProgressBar,
    count: &Mutex<Option<String>>,
    ended: &Receiver<Infallible>,
) {
    let mut patience = LONG;
    while ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
        let count = match lock(count).as_deref() {
            Some(count) => {
                count
                    .replace("{pos}", &bar.position().to_string())
                    .replace("{len}", &bar.length().unwrap_or(0).to_string())
                    + ", "
            }
            None => String::new(),
        };
        say(&format!(
            "   {name:NAME_WIDTH$} {}, {count}{}",
            duration(started.elapsed()),
            bar.message()
        ));
        patience = PLAIN_INTERVAL;
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
