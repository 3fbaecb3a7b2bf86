// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which ways work, from what was found.

use std::fmt;

use serde::Serialize;

use super::finding::{Finding, State, Way};

/// Whether a way works. The names of the fields are those of the JSON, which stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    pub(super) way: Way,
    pub(super) verdict: Kind,
    /// What is lacking.
    pub(super) lacks: Vec<Reason>,
    /// What isn't known.
    pub(super) unknown: Vec<Reason>,
    /// Commands that have to be run before.
    pub(super) after: Vec<String>,
}

/// A finding that stands against a way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Reason {
    /// What it is about.
    pub(super) what: &'static str,
    /// What is lacking, or why it isn't known.
    pub(super) why: String,
}

/// What a verdict comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// It works now.
    Works,
    /// It would work after commands.
    WorksAfter,
    /// Something that it takes isn't known.
    Unknown,
    /// This kernel, driver or NIC can't.
    Lacks,
}

impl Verdict {
    /// What findings come to, for a way.
    pub(super) fn of(way: Way, findings: &[Finding]) -> Self {
        let (mut lacks, mut unknown, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for finding in findings.iter().filter(|f| f.ways.contains(&way)) {
            let reason = |why: &String| Reason {
                what: finding.what,
                why: why.clone(),
            };
            match &finding.state {
                State::Good | State::Note => {}
                State::Fix(command) if after.contains(command) => {}
                State::Fix(command) => after.push(command.clone()),
                State::Unknown(why) => unknown.push(reason(why)),
                State::Lacks(what) => lacks.push(reason(what)),
            }
        }
        let verdict = match (lacks.is_empty(), unknown.is_empty(), after.is_empty()) {
            (false, _, _) => Kind::Lacks,
            (true, false, _) => Kind::Unknown,
            (true, true, false) => Kind::WorksAfter,
            (true, true, true) => Kind::Works,
        };
        Self {
            way,
            verdict,
            lacks,
            unknown,
            after,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = self.after.join("; ");
        let names = |reasons: &[Reason]| {
            let names: Vec<_> = reasons.iter().map(|reason| reason.what).collect();
            names.join(", ")
        };
        match self.verdict {
            Kind::Works => f.write_str("works"),
            Kind::WorksAfter => write!(f, "would work after: {after}"),
            Kind::Lacks => write!(f, "lacks: {}", names(&self.lacks)),
            Kind::Unknown => {
                write!(f, "unknown: {}", names(&self.unknown))?;
                match after.is_empty() {
                    true => Ok(()),
                    false => write!(f, "; and it takes: {after}"),
                }
            }
        }
    }
}
