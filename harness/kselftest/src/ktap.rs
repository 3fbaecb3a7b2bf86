// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a test prints: the kernel's version of the Test Anything Protocol
//! (Documentation/dev-tools/ktap.rst), as net/lib/py/ksft.py writes it.

use serde::{Deserialize, Serialize};

/// What came of a sub-case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It held.
    Pass,
    /// It did not.
    Fail,
    /// It could not be tried.
    Skip,
    /// It did not hold, as the test itself expects.
    Xfail,
}

/// A sub-case, as the test reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    /// Why it did not pass, in the test's own words.
    pub(crate) reason: String,
}

/// The name of what concerns a test and none of its sub-cases.
pub(crate) const WHOLE: &str = "(whole)";

/// Sub-cases in what the test called `test` printed, and whether those are all that it planned.
pub(crate) fn parse(test: &str, output: &[String]) -> (Vec<Case>, bool) {
    let mut cases = Vec::new();
    let mut planned = None;
    // What was said since the last result.
    let mut said: Vec<&str> = Vec::new();
    for line in output.iter().map(String::as_str) {
        if let Some(count) = line.strip_prefix("1..") {
            planned = count.trim().parse::<usize>().ok();
        } else if let Some(mut case) = result(test, line) {
            if case.verdict == Verdict::Fail {
                case.reason = reason(&said);
            }
            cases.push(case);
            said.clear();
        } else {
            said.push(line);
        }
    }
    let whole = planned.is_some_and(|planned| planned <= cases.len());
    if cases.is_empty() {
        cases.push(Case {
            name: WHOLE.to_owned(),
            verdict: Verdict::Fail,
            reason: reason(&said),
        });
    }
    (cases, whole)
}

/// `[not ]ok NUMBER TEST.CASE[ # SKIP|XFAIL why]`
fn result(test: &str, line: &str) -> Option<Case> {
    let (ok, rest) = match line.strip_prefix("not ") {
        Some(rest) => (false, rest),
        None => (true, line),
    };
    let rest = rest.strip_prefix("ok ")?;
    let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    number.parse::<u32>().ok()?;
    let (name, comment) = rest.split_once(" # ").unwrap_or((rest, ""));
    let name = name.strip_prefix(test).unwrap_or(name);
    let name = name.strip_prefix('.').unwrap_or(name).trim();
    let (verdict, reason) = match comment.split_once(' ').unwrap_or((comment, "")) {
        ("SKIP", why) => (Verdict::Skip, why),
        ("XFAIL", why) => (Verdict::Xfail, why),
        _ if ok => (Verdict::Pass, ""),
        _ => (Verdict::Fail, comment),
    };
    Some(Case {
        name: if name.is_empty() { WHOLE } else { name }.to_owned(),
        verdict,
        reason: reason.trim().to_owned(),
    })
}

/// Why a sub-case failed: the first check that did, else what was raised, with what a program that
/// failed said; else the last words.
fn reason(said: &[&str]) -> String {
    let checks = said
        .iter()
        .filter_map(|line| line.strip_prefix("# "))
        .find(|line| line.starts_with("Check failed") || line.starts_with("Waiting for"));
    if let Some(check) = checks {
        return check.trim().to_owned();
    }
    let raised: Vec<&str> = said
        .iter()
        .map(|line| line.strip_prefix("# Exception|").unwrap_or(line))
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    // The last of a chain: the others are what led to it.
    let error = raised.iter().rposition(|line| is_exception(line));
    let Some((error, after)) = error.map(|at| (raised[at], &raised[at + 1..])) else {
        let last = said.iter().rfind(|line| !line.trim().is_empty());
        return last
            .map_or("it said nothing", |line| line)
            .trim()
            .to_owned();
    };
    // Of a program that failed: its command, and what it said, to the end.
    let command = after.iter().find(|line| line.starts_with("CMD"));
    let words = after
        .iter()
        .skip_while(|line| !line.trim().starts_with("STDERR"));
    std::iter::once(&error)
        .chain(command)
        .chain(words)
        .map(|line| line.trim())
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

/// `package.module.Name: message`, as Python ends a trace.
fn is_exception(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    let ends = [
        "Error",
        "Exception",
        "Failure",
        "Ex",
        "Expired",
        "Interrupt",
        "Terminate",
    ];
    !last.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || c == '.' || c == '_')
        && ends.iter().any(|end| last.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_verdict_is_read_with_its_reason() {
        let output = lines(
            "TAP version 13\n1..4\nok 1 ping.v4\n# Check| At x.py\n# Check failed 1 != 2 why\n\
             not ok 2 ping.v6\nok 3 ping.xdp # SKIP no XDP\nok 4 ping.sim # XFAIL netdevsim only\n\
             # Totals: pass:1 fail:1 xfail:1 xpass:0 skip:1 error:0\n",
        );
        let (cases, whole) = parse("ping", &output);
        assert!(whole);
        let found: Vec<_> = cases
            .iter()
            .map(|case| (case.name.as_str(), case.verdict, case.reason.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("v4", Verdict::Pass, ""),
                ("v6", Verdict::Fail, "Check failed 1 != 2 why"),
                ("xdp", Verdict::Skip, "no XDP"),
                ("sim", Verdict::Xfail, "netdevsim only"),
            ]
        );
    }

    #[test]
    fn what_was_raised_is_the_reason_with_what_the_program_said() {
        let output = lines(
            "1..1\n# Exception| Traceback (most recent call last):\n\
             # Exception|   File \"/x/ksft.py\", line 1, in ksft_run\n\
             # Exception| net.lib.py.utils.CmdExitFailure: Command failed\n\
             # Exception| CMD: ethtool -L nic0 combined 1\n# Exception|   EXIT: 1\n\
             # Exception|   STDERR: netlink error\n# Exception|           not supported\n\
             # Exception| \nnot ok 1 rings.a\n",
        );
        let (cases, _) = parse("rings", &output);
        assert_eq!(
            cases[0].reason,
            "net.lib.py.utils.CmdExitFailure: Command failed; CMD: ethtool -L nic0 combined 1; \
             STDERR: netlink error; not supported"
        );
    }

    #[test]
    fn a_test_that_never_began_is_one_case_that_failed() {
        let output = lines("Traceback (most recent call last):\nException: no such device\n");
        let (cases, whole) = parse("tso", &output);
        assert!(!whole);
        assert_eq!((cases.len(), cases[0].name.as_str()), (1, WHOLE));
        assert_eq!(cases[0].reason, "Exception: no such device");
        assert_eq!(cases[0].verdict, Verdict::Fail);
    }

    #[test]
    fn a_test_that_did_less_than_it_planned_is_not_whole() {
        let (cases, whole) = parse("a", &lines("1..3\nok 1 a.b\n"));
        assert_eq!((cases.len(), whole), (1, false));
    }
}
