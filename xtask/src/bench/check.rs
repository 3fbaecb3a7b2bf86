// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compares figures with the committed ones.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use fs_err as fs;

use super::figures::{
    DEVICE_LOADED, DEVICE_STORED, Figure, INSTRUCTIONS, INTERRUPTS, LOADED, PAGE_ALLOCATIONS, REPS,
    STORED,
};
use crate::project::Project;
use crate::ui;

/// How much worse a figure may be, beyond how far its repeats were apart.
const TOLERANCE: f64 = 0.01;

/// Figures that are compared, and how much worse each may be beside that, in its unit. Less is
/// better in all of them.
const COMPARED: &[(&str, f64)] = &[
    (INSTRUCTIONS, 0.0),
    (REPS, 0.0),
    (LOADED, 0.0),
    (STORED, 0.0),
    (DEVICE_LOADED, 0.0),
    (DEVICE_STORED, 0.0),
    // Few or none, which a stream that has more in flight makes some more of.
    (PAGE_ALLOCATIONS, 0.5),
];

/// What an interrupt costs, with what it wakes: how much more per byte a figure may be for each that there
/// is more in a MiB. How many there are is a habit of streams, which the speed of the host has a say in; these
/// are the differences between a row and the same with two flows, which has twice as many.
const OF_AN_INTERRUPT: &[(&str, f64)] = &[
    (INSTRUCTIONS, 10_400.0 / MIB),
    (REPS, 66.0 / MIB),
    (LOADED, 21_500.0 / MIB),
    (STORED, 14_800.0 / MIB),
];
const MIB: f64 = 1_048_576.0;

/// Those of `figures` that a comparison needs.
pub(crate) fn compared_of(mut figures: Vec<Figure>) -> Vec<Figure> {
    figures.retain(|figure| {
        let name = figure.figure.as_str();
        let needed = name == INTERRUPTS || COMPARED.iter().any(|(compared, _)| *compared == name);
        needed && figure.part.is_none()
    });
    figures
}

/// Those that a change must not make worse.
pub(crate) fn compared(project: &Project) -> PathBuf {
    project.root.join("Documentation/performance-check.json")
}

/// The committed figures.
pub(crate) fn committed(project: &Project) -> PathBuf {
    project.root.join("Documentation/performance.json")
}

/// Writes figures, one to a line, so that changes can be read.
///
/// # Errors
///
/// When the file cannot be written.
pub(crate) fn write(path: &Path, figures: &[Figure]) -> Result<()> {
    let lines: Vec<String> = figures
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()?;
    Ok(fs::write(path, format!("[\n{}\n]\n", lines.join(",\n")))?)
}

/// `old` with the rows of `new` in the place of their namesakes; others come last.
pub(crate) fn replace_rows(old: Vec<Figure>, new: &[Figure]) -> Vec<Figure> {
    fn row(figure: &Figure) -> (&str, u32, u32) {
        (&figure.row, figure.mtu, figure.io)
    }
    let mut all: Vec<Figure> = Vec::with_capacity(old.len() + new.len());
    for old in old {
        let mut namesakes = new.iter().filter(|new| row(new) == row(&old)).peekable();
        if namesakes.peek().is_none() {
            all.push(old);
        } else if !all.iter().any(|figure| row(figure) == row(&old)) {
            all.extend(namesakes.cloned());
        }
    }
    for new in new {
        if !all.contains(new) {
            all.push(new.clone());
        }
    }
    all
}

/// Figures next to the committed ones.
#[derive(Default)]
struct Comparison {
    compared: usize,
    worse: Vec<String>,
    better: Vec<String>,
}

/// Whether one of `new` got worse than its namesake of `old`.
pub(crate) fn is_worse(old: &[Figure], new: &[Figure]) -> bool {
    !look(old, new).worse.is_empty()
}

/// Fails when a figure got worse, or none could be compared.
///
/// # Errors
///
/// Names every figure that is worse.
pub(crate) fn compare(old: &[Figure], new: &[Figure]) -> Result<()> {
    let Comparison {
        compared,
        worse,
        better,
    } = look(old, new);
    for line in better {
        ui::note(&format!("better: {line}"));
    }
    ensure!(
        compared > 0,
        "no figure could be compared: none of these rows is among the committed ones"
    );
    if !worse.is_empty() {
        bail!(
            "{} of {compared} figures got worse by more than {} %:\n  {}",
            worse.len(),
            TOLERANCE * 100.0,
            worse.join("\n  ")
        );
    }
    ui::note(&format!(
        "none of {compared} figures got worse by more than {} %",
        TOLERANCE * 100.0
    ));
    Ok(())
}

/// A figure of the row that `of` is one of.
fn of_row<'a>(figures: &'a [Figure], of: &Figure, name: &str) -> Option<&'a Figure> {
    let row = |figure: &Figure| (figure.row.clone(), figure.mtu, figure.io);
    let wanted = row(of);
    figures
        .iter()
        .find(|figure| figure.part.is_none() && figure.figure == name && row(figure) == wanted)
}

fn look(old: &[Figure], fresh: &[Figure]) -> Comparison {
    let mut seen = Comparison::default();
    for new in fresh.iter().filter(|f| f.part.is_none()) {
        let Some(committed) = of_row(old, new, &new.figure) else {
            continue;
        };
        let Some((_, slack)) = COMPARED.iter().find(|(name, _)| *name == new.figure) else {
            continue;
        };
        let interrupts = |figures| of_row(figures, new, INTERRUPTS).map_or(0.0, |f| f.low);
        let more = (interrupts(fresh) - interrupts(old)).max(0.0);
        let of_an_interrupt = OF_AN_INTERRUPT.iter().find(|(name, _)| *name == new.figure);
        let of_interrupts = of_an_interrupt.map_or(0.0, |(_, cost)| cost * more);
        let old = committed;
        seen.compared += 1;
        let line = format!(
            "{}, MTU {}, {}: {} {} instead of {}",
            new.row,
            new.mtu,
            super::scenario::size(new.io),
            new.figure,
            new.low,
            old.low
        );
        // Most of what repeats are apart comes from their interrupts, too.
        let tolerance = TOLERANCE * old.low + slack + of_interrupts.max(old.high - old.low);
        if new.low > old.low + tolerance {
            seen.worse.push(line);
        } else if new.low < old.low - tolerance {
            seen.better.push(line);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_rows_replace_their_namesakes_and_leave_the_others() {
        let at = |mtu: u32, name: &str, value: f64| Figure {
            mtu,
            ..figure(name, value)
        };
        let old = vec![at(1, "a", 1.0), at(1, "b", 2.0), at(2, "a", 3.0)];
        let new = [at(1, "a", 4.0), at(1, "c", 5.0), at(3, "a", 6.0)];
        let all = replace_rows(old, &new);
        let seen: Vec<_> = all
            .iter()
            .map(|f| (f.mtu, f.figure.as_str(), f.value))
            .collect();
        assert_eq!(
            seen,
            [(1, "a", 4.0), (1, "c", 5.0), (2, "a", 3.0), (3, "a", 6.0)]
        );
    }

    fn figure(name: &str, value: f64) -> Figure {
        Figure {
            row: "rigb".to_owned(),
            mtu: 9000,
            io: 65536,
            figure: name.to_owned(),
            value,
            low: value,
            high: value,
            ..Figure::default()
        }
    }

    #[test]
    fn a_figure_that_got_worse_by_more_than_a_hundredth_fails() {
        let old = [figure(INSTRUCTIONS, 1.0), figure("reads", 1.0)];
        assert!(compare(&old, &[figure(INSTRUCTIONS, 1.009)]).is_ok());
        assert!(compare(&old, &[figure(INSTRUCTIONS, 0.5)]).is_ok());
        assert!(!is_worse(&old, &[figure(INSTRUCTIONS, 1.009)]));
        assert!(is_worse(&old, &[figure(INSTRUCTIONS, 1.011)]));
        let error = compare(&old, &[figure(INSTRUCTIONS, 1.011)]).unwrap_err();
        assert!(error.to_string().contains("1.011 instead of 1"), "{error}");
    }

    #[test]
    fn one_good_repeat_is_enough() {
        let old = [figure(INSTRUCTIONS, 1.0)];
        let mut new = figure(INSTRUCTIONS, 1.2);
        new.low = 1.005;
        assert!(compare(&old, &[new]).is_ok());
    }

    #[test]
    fn repeats_that_were_apart_allow_as_much() {
        let mut old = figure(INSTRUCTIONS, 1.02);
        (old.low, old.high) = (1.0, 1.03);
        assert!(compare(std::slice::from_ref(&old), &[figure(INSTRUCTIONS, 1.035)]).is_ok());
        assert!(compare(&[old], &[figure(INSTRUCTIONS, 1.045)]).is_err());
    }

    #[test]
    fn an_interrupt_more_may_cost_what_one_costs_and_nothing_else_may() {
        let old = [figure(INSTRUCTIONS, 0.752), figure(INTERRUPTS, 14.0)];
        let more = |instructions, interrupts| {
            let new = [(INSTRUCTIONS, instructions), (INTERRUPTS, interrupts)];
            is_worse(&old, &new.map(|(name, value)| figure(name, value)))
        };
        assert!(!more(0.85, 25.0));
        assert!(more(0.85, 14.0));
        assert!(more(0.88, 25.0));
        assert!(more(0.762, 10.0), "fewer of them allow nothing less");
    }

    #[test]
    fn repeats_that_were_apart_allow_nothing_beyond_what_more_interrupts_cost() {
        let mut old = [figure(INSTRUCTIONS, 0.752), figure(INTERRUPTS, 14.0)];
        old[0].high = 0.80;
        let more = |instructions| {
            is_worse(
                &old,
                &[figure(INSTRUCTIONS, instructions), figure(INTERRUPTS, 25.0)],
            )
        };
        assert!(!more(0.86));
        assert!(more(0.88));
    }

    #[test]
    fn a_byte_in_device_memory_fails_where_there_was_none() {
        let old = [figure(DEVICE_STORED, 0.0)];
        assert!(compare(&old, &[figure(DEVICE_STORED, 0.001)]).is_err());
    }

    #[test]
    fn allocations_for_each_packet_fail_where_there_were_none() {
        let old = [figure(PAGE_ALLOCATIONS, 0.0)];
        assert!(compare(&old, &[figure(PAGE_ALLOCATIONS, 0.4)]).is_ok());
        assert!(compare(&old, &[figure(PAGE_ALLOCATIONS, 120.0)]).is_err());
    }

    #[test]
    fn a_comparison_of_nothing_fails() {
        let old = [figure("reads", 1.0)];
        assert!(compare(&old, &[figure("reads", 9.0)]).is_err());
        assert!(compare(&[], &[figure(INSTRUCTIONS, 1.0)]).is_err());
    }
}
