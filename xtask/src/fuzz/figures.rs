// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a campaign found, as text, as JSON and as a table.

use std::fmt::{Display, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use cases::hostile::{Device, Tally};
use fs_err as fs;
use serde::{Deserialize, Serialize};

/// A campaign's figures.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    /// What lied.
    pub(super) device: Device,
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
            ("lies told", tally.lies),
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

    /// What tells campaigns apart: one of each is kept.
    fn kind(&self) -> (Device, &str) {
        (self.device, &self.flavour)
    }

    fn plans_an_hour(&self) -> u64 {
        self.tally.plans * 3600 / self.seconds.max(1)
    }
}

/// The last campaign of each kind, in order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Campaigns(Vec<Figures>);

impl Campaigns {
    /// # Errors
    ///
    /// When the file can't be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)?;
        serde_json::from_str(&text).with_context(|| format!("{} has no campaigns", path.display()))
    }

    /// With this one in place of the last of its kind.
    pub(super) fn with(mut self, new: Figures) -> Self {
        self.0.retain(|figures| figures.kind() != new.kind());
        self.0.push(new);
        self.0.sort_by(|a, b| a.kind().cmp(&b.kind()));
        self
    }

    /// For the page.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |what: &str, of: &dyn Fn(&Figures) -> String| {
            let cells: Vec<_> = self.0.iter().map(of).collect();
            let _ = writeln!(text, "| {what} | {} |", cells.join(" | "));
        };
        row("device, kernel", &|figures| {
            format!("{}, {}", figures.device, figures.flavour)
        });
        row("---", &|_| "---".to_owned());
        let mut about = |what: &str, of: fn(&Figures) -> &dyn Display| {
            row(what, &|figures| of(figures).to_string());
        };
        about("commit", |figures| &figures.commit);
        about("Linux", |figures| &figures.kernel);
        about("QEMU", |figures| &figures.qemu);
        about("seeds from", |figures| &figures.seed);
        about("guests at once", |figures| &figures.guests);
        row("plans an hour", &|figures| {
            figures.plans_an_hour().to_string()
        });
        if let Some(first) = self.0.first() {
            for (at, (what, _)) in first.rows().into_iter().enumerate() {
                row(what, &|figures| figures.rows()[at].1.to_string());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::{JSON, PAGE};
    use super::*;

    fn figures(device: Device, flavour: &str, plans: u64) -> Figures {
        Figures {
            device,
            commit: "1234".to_owned(),
            kernel: "7.3".to_owned(),
            flavour: flavour.to_owned(),
            qemu: "11".to_owned(),
            seed: 0,
            guests: 1,
            seconds: 0,
            tally: Tally {
                wanted: 2,
                plans,
                ..Tally::default()
            },
        }
    }

    #[test]
    fn the_page_has_the_figures_of_the_committed_campaigns() {
        let root = crate::project::root().unwrap();
        let campaigns = Campaigns::read(&root.join(JSON)).unwrap();
        for figures in &campaigns.0 {
            let (kind, tally) = (figures.kind(), &figures.tally);
            assert!(tally.is_whole(), "{kind:?}");
            assert_eq!(tally.harms(), 0, "{kind:?}");
        }
        let of_nic = |figures: &&Figures| figures.kind() == (Device::Nic, "plain");
        let of_nic = campaigns.0.iter().find(of_nic).unwrap();
        assert!(of_nic.tally.plans >= 10_000, "{}", of_nic.tally.plans);
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        assert!(page.contains(&campaigns.table()));
    }

    #[test]
    fn a_campaign_takes_the_place_of_the_last_of_its_device_and_kernel() {
        let campaigns = [
            figures(Device::Engine, "plain", 1),
            figures(Device::Nic, "debug", 2),
            figures(Device::Nic, "plain", 3),
            figures(Device::Nic, "debug", 4),
        ];
        let last = campaigns
            .into_iter()
            .fold(Campaigns(Vec::new()), Campaigns::with);
        let table = last.table();
        let first = table.lines().next().unwrap();
        assert_eq!(
            first,
            "| device, kernel | nic, debug | nic, plain | engine, plain |"
        );
        assert!(table.contains("| plans | 4 | 3 | 1 |"), "{table}");
    }

    #[test]
    fn figures_that_are_not_all_say_so() {
        let text = |plans| figures(Device::Nic, "plain", plans).text();
        assert!(text(1).contains("2 were wanted"));
        assert!(!text(2).contains("wanted"));
    }
}
