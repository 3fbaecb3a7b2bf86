// SPDX-License-Identifier: MIT OR Apache-2.0

//! `check`: what an interface, its driver and the kernel can and lack. Facts are gathered, findings are
//! made of facts, and verdicts of findings; only the first asks anybody.

mod attempt;
mod facts;
mod finding;
mod findings;
mod gather;
mod steering;
#[cfg(test)]
mod tests;
mod verdict;

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anyhow::Result;
use serde::Serialize;

use self::facts::Facts;
use self::finding::{Finding, State, Way};
use self::verdict::{Kind, Verdict};
use crate::asked::Asked;
use crate::exit;
use crate::interface::About;
use crate::table::table;

/// Of what, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    about: About,
    /// Bind memory to an RX queue that nothing uses, or to this one, for a moment: only that shows whether the
    /// driver can. The queue is restarted
    #[arg(
        long = "try",
        value_name = "QUEUE",
        num_args = 0..=1,
        require_equals = true
    )]
    attempt: Option<Option<u32>>,
    /// Fail unless these work now
    #[arg(long = "for", value_name = "WAY", value_delimiter = ',')]
    ways: Vec<Way>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// All that is said. The names of the fields are those of the JSON, which stay.
#[derive(Debug, Serialize)]
struct Report {
    interface: String,
    driver: Option<String>,
    kernel: String,
    /// The operations that the kernel's netlink families have, of those that matter.
    operations: Operations,
    findings: Vec<Finding>,
    verdicts: Vec<Verdict>,
}

/// Of each family, by the names of the kernel's specifications.
#[derive(Debug, Serialize)]
struct Operations {
    netdev: Asked<Vec<&'static str>>,
    ethtool: Asked<Vec<&'static str>>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let facts = gather::facts(arguments.about.find()?, arguments.attempt)?;
    let report = Report::of(&facts);
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => report.text(),
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(match report.holds(&arguments.ways) {
        true => exit::HOLDS,
        false => exit::FAILED,
    })
}

impl Report {
    fn of(facts: &Facts) -> Self {
        let findings = findings::of(facts);
        Self {
            interface: facts.interface.clone(),
            driver: facts.driver.known().cloned(),
            kernel: facts.release.clone(),
            operations: Operations {
                netdev: facts.netdev.clone(),
                ethtool: facts.ethtool.clone(),
            },
            verdicts: Way::ALL.map(|way| Verdict::of(way, &findings)).into(),
            findings,
        }
    }

    /// Whether these ways work now.
    fn holds(&self, ways: &[Way]) -> bool {
        let mut asked = self.verdicts.iter().filter(|v| ways.contains(&v.way));
        asked.all(|verdict| verdict.verdict == Kind::Works)
    }

    fn text(&self) -> String {
        let driver = self.driver.as_ref();
        let driver = driver.map_or_else(String::new, |name| format!("{name}, "));
        let mut text = format!("{}: {driver}Linux {}\n\n", self.interface, self.kernel);
        let rows = self.findings.iter().map(|finding| {
            let (mark, detail) = match &finding.state {
                State::Good => ("ok", None),
                State::Note => ("", None),
                State::Fix(command) => ("fix", Some(command)),
                State::Unknown(why) => ("?", Some(why)),
                State::Lacks(what) => ("lacks", Some(what)),
            };
            let mut found = finding.found.clone();
            if let Some(detail) = detail.filter(|detail| **detail != found) {
                let _ = write!(found, ": {detail}");
            }
            [mark, finding.what, &found, &finding.shown_by]
                .map(str::to_owned)
                .to_vec()
        });
        text += &table(&rows.collect::<Vec<_>>(), Some(2));
        text.push('\n');
        let rows = self.verdicts.iter();
        let rows = rows.map(|verdict| vec![verdict.way.to_string(), verdict.to_string()]);
        text + &table(&rows.collect::<Vec<_>>(), Some(1))
    }
}
