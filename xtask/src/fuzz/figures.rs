// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a campaign found, as text, as JSON and as a table.

use std::fmt::Write as _;

use cases::hostile::Tally;
use serde::{Deserialize, Serialize};

/// A campaign's figures.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    /// What was tested, on what.
    pub(super) commit: String,
    pub(super) kernel: String,
    pub(super) flavour: String,
    pub(super) qemu: String,
    /// The first seed.
    pub(super) seed: u64,
    /// How many guests ran at once.
    pub(super) guests: usize,
    /// How long it took.
    pub(super) seconds: u64,
    #[serde(flatten)]
    pub(super) tally: Tally,
}

impl Figures {
    fn rows(&self) -> [(&'static str, u64); 11] {
        let tally = &self.tally;
        [
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
            ("leaks", tally.leaks),
        ]
    }

    /// For a person.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (what, count) in self.rows() {
            let _ = writeln!(text, "{count:>10}  {what}");
        }
        if !self.tally.is_whole() {
            let _ = writeln!(
                text,
                "These are not all: {} were wanted.",
                self.tally.wanted
            );
        }
        for failure in &self.tally.failures {
            let _ = writeln!(text, "\nseeds {:?}: {}", failure.seeds, failure.harm);
            for lie in failure.plan.iter().flat_map(|plan| &plan.lies) {
                let _ = writeln!(text, "    {lie}");
            }
        }
        text
    }

    /// For the page.
    pub(super) fn table(&self) -> String {
        let Self {
            commit,
            kernel,
            flavour,
            qemu,
            seed,
            guests,
            seconds,
            tally,
        } = self;
        let mut text = format!(
            "Commit {commit}, Linux {kernel} ({flavour}), QEMU {qemu}; seeds from {seed} on, {guests} guests at once, \
             {} plans an hour.\n\n| what | how often |\n|---|---|\n",
            tally.plans * 3600 / (*seconds).max(1)
        );
        for (what, count) in self.rows() {
            let _ = writeln!(text, "| {what} | {count} |");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::super::{JSON, PAGE};
    use super::*;

    #[test]
    fn the_page_has_the_figures_of_the_committed_campaign() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |name| fs::read_to_string(root.join(name)).unwrap();
        let figures: Figures = serde_json::from_str(&read(JSON)).unwrap();
        assert!(figures.tally.is_whole());
        assert!(read(PAGE).contains(&figures.table()));
    }

    #[test]
    fn figures_that_are_not_all_say_so() {
        let mut figures = Figures {
            commit: "1234".to_owned(),
            kernel: "7.3".to_owned(),
            flavour: "plain".to_owned(),
            qemu: "11".to_owned(),
            seed: 0,
            guests: 1,
            seconds: 0,
            tally: Tally {
                wanted: 2,
                plans: 1,
                ..Tally::default()
            },
        };
        assert!(figures.text().contains("2 were wanted"));
        figures.tally.plans = 2;
        assert!(!figures.text().contains("wanted"));
    }
}
