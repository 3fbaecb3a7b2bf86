// SPDX-License-Identifier: MIT OR Apache-2.0

//! Results as tables of Markdown.

use kselftest::{Outcome, Verdict};

/// Drivers, in the order of columns.
const DRIVERS: [&str; 4] = ["rigb", "rigb-model", "igb", "igb-model"];
/// Longest reason that is shown, in characters.
const LONGEST: usize = 160;

/// How many sub-cases of each verdict there are: `5 pass, 2 skip`.
pub(super) fn counts<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> String {
    let verdicts = [
        (Verdict::Pass, "pass"),
        (Verdict::Fail, "fail"),
        (Verdict::Xfail, "xfail"),
        (Verdict::Skip, "skip"),
    ];
    let parts: Vec<String> = verdicts
        .iter()
        .map(|(verdict, name)| {
            let found = outcomes.clone().filter(|o| o.result == *verdict).count();
            (found, name)
        })
        .filter(|(found, _)| *found > 0)
        .map(|(found, name)| format!("{found} {name}"))
        .collect();
    match parts.is_empty() {
        true => "–".to_owned(),
        false => parts.join(", "),
    }
}

/// One table with a line for each test, and one for each test with a line for each sub-case.
pub(super) fn tables(outcomes: &[Outcome]) -> String {
    let mut tests: Vec<&str> = outcomes.iter().map(|o| o.test.as_str()).collect();
    tests.dedup();
    let columns = DRIVERS.join(" | ");
    let rule = "|---".repeat(DRIVERS.len());
    let mut text = format!("| test | {columns} |\n|---{rule}|\n");
    for test in &tests {
        let counts = DRIVERS.map(|driver| {
            let of = |o: &&Outcome| o.test == *test && o.driver == driver;
            counts(outcomes.iter().filter(of))
        });
        text.push_str(&format!("| {test} | {} |\n", counts.join(" | ")));
    }
    for test in &tests {
        text.push_str(&format!(
            "\n### {test}\n\n| case | {columns} | reason |\n|---{rule}|---|\n"
        ));
        let of_test: Vec<&Outcome> = outcomes.iter().filter(|o| o.test == *test).collect();
        let mut seen = Vec::new();
        for outcome in &of_test {
            if !seen.contains(&&outcome.case) {
                seen.push(&outcome.case);
                text.push_str(&line(&outcome.case, &of_test));
            }
        }
    }
    text
}

fn line(case: &str, of_test: &[&Outcome]) -> String {
    let found = DRIVERS.map(|driver| {
        of_test
            .iter()
            .find(|o| o.case == case && o.driver == driver)
    });
    let results = found.map(|outcome| outcome.map_or("–", |o| word(o.result)));
    // What several say is said once, by the first of them.
    let mut reasons: Vec<(&str, &str)> = Vec::new();
    for (driver, outcome) in DRIVERS.into_iter().zip(found) {
        let reason = outcome.map_or("", |o| o.reason.as_str());
        if !reason.is_empty() && reasons.iter().all(|(_, said)| *said != reason) {
            reasons.push((driver, reason));
        }
    }
    let reasons = reasons.into_iter().map(|(driver, reason)| match driver {
        driver if driver == DRIVERS[0] => cell(reason),
        driver => format!("{driver}: {}", cell(reason)),
    });
    format!(
        "| `{}` | {} | {} |\n",
        case.replace('|', "\\|"),
        results.join(" | "),
        reasons.collect::<Vec<_>>().join("; ")
    )
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "**fail**",
        Verdict::Xfail => "xfail",
        Verdict::Skip => "skip",
    }
}

/// A text in a table: what would end a cell or start something is escaped.
fn cell(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
        .replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "\\<")
        .replace('*', "\\*")
        .replace('_', "\\_")
        .replace('`', "\\`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(driver: &str, result: Verdict, reason: &str) -> Outcome {
        Outcome {
            test: "irq".to_owned(),
            case: "move|it".to_owned(),
            result,
            reason: reason.to_owned(),
            driver: driver.to_owned(),
        }
    }

    #[test]
    fn a_sub_case_is_one_line_with_all_drivers() {
        let text = tables(&[
            outcome("rigb", Verdict::Pass, ""),
            outcome("igb", Verdict::Fail, "Check failed"),
        ]);
        assert!(text.contains("| irq | 1 pass | – | 1 fail | – |"), "{text}");
        assert!(
            text.contains("| `move\\|it` | pass | – | **fail** | – | igb: Check failed |"),
            "{text}"
        );
    }

    #[test]
    fn a_reason_that_several_have_is_shown_once() {
        let text = tables(&[
            outcome("rigb", Verdict::Skip, "no steering"),
            outcome("igb", Verdict::Skip, "no steering"),
        ]);
        assert!(
            text.contains("| skip | – | skip | – | no steering |"),
            "{text}"
        );
    }
}
