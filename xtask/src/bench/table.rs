// SPDX-License-Identifier: MIT OR Apache-2.0

//! Figures as tables of Markdown, which a terminal shows well, too.

use super::figures::{
    DEVICE_LOADED, DEVICE_STORED, DOORBELL_WRITES, FRAGMENTS, Figure, GOODPUT, GOODPUT_CEILING,
    GOODPUT_SHARE, INSTRUCTIONS, INTERRUPTS, LOADED, NET_IOV_ALLOCATIONS, PAGE_ALLOCATIONS,
    PER_PACKET, READS, REPS, RETRANSMITS, STORED, by_part, find, sizes,
};
use super::parts::PARTS;
use super::scenario::{RESTART, SCENARIOS, size};
use crate::kernel::Flavour;

/// What others are compared with: their names.
const BASE: &str = "igb";
const CLANG_BASE: &str = "igb, clang";
const TODAY: &str = "igb + copy";

/// The scenario that scenarios with batches of tokens differ from in nothing else.
const TOKENS_BY_READ: &str = "rigb devmem RX, udmabuf";

/// The tables: one for each MTU and size, and one by part.
pub(crate) fn tables(figures: &[Figure]) -> String {
    let (restart, transfers): (Vec<_>, Vec<_>) =
        figures.iter().cloned().partition(|f| f.row == RESTART);
    let figures = &transfers[..];
    let mut text = String::new();
    for (mtu, io) in sizes(figures) {
        text.push_str(&format!(
            "### MTU {mtu}, reads and writes of {}\n\n",
            size(io)
        ));
        for (head, lines) in [
            (columns(), totals(figures, mtu, io)),
            (
                part_columns("insn per byte by part"),
                parts(figures, mtu, io, &[INSTRUCTIONS], 3),
            ),
            (
                part_columns("loaded + stored per byte by part"),
                parts(figures, mtu, io, &[LOADED, STORED], 2),
            ),
            (token_columns(), by_token_batch(figures, mtu, io)),
            (wire_columns(), on_paced_wire(figures, mtu, io)),
        ] {
            if !lines.is_empty() {
                text.push_str(&table(&head, &lines));
                text.push('\n');
            }
        }
    }
    if !restart.is_empty() {
        text.push_str("### Restart of a queue\n\n");
        let head = ["figure", "median", "least", "most"].map(str::to_owned);
        let lines: Vec<_> = restart.iter().map(line_of).collect();
        text.push_str(&table(&head, &lines));
        text.push('\n');
    }
    text
}

fn line_of(figure: &Figure) -> Vec<String> {
    let values = [figure.value, figure.low, figure.high].map(|value| format!("{value:.0}"));
    std::iter::once(figure.figure.clone())
        .chain(values)
        .collect()
}

fn columns() -> Vec<String> {
    [
        "per payload byte, TX and RX",
        "insn",
        "rep",
        "loaded",
        "stored",
        "of it in device memory",
        "insn/packet",
        "doorbells/MiB",
        "interrupts/MiB",
        "allocations/MiB",
        "work ÷ igb",
        "igb + copy ÷ work",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn part_columns(what: &str) -> Vec<String> {
    std::iter::once(&what)
        .chain(PARTS)
        .map(|&column| column.to_owned())
        .collect()
}

fn token_columns() -> Vec<String> {
    let columns = [
        "devmem RX, tokens returned together",
        "insn",
        "rep",
        "loaded",
        "stored",
    ];
    columns.map(str::to_owned).to_vec()
}

fn totals(figures: &[Figure], mtu: u32, io: u32) -> Vec<Vec<String>> {
    let value = |row: &str, figure: &str| find(figures, row, mtu, io, figure);
    let work = |row: &str| Some(value(row, INSTRUCTIONS)? + value(row, REPS)?);
    let ratio = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    let mut lines = Vec::new();
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.is_way()) {
        let row = scenario.name;
        let Some(own) = work(row) else { continue };
        let base = match scenario.kernel {
            Flavour::Clang => CLANG_BASE,
            _ => BASE,
        };
        let allocations = value(row, PAGE_ALLOCATIONS).zip(value(row, NET_IOV_ALLOCATIONS));
        let device = value(row, DEVICE_LOADED).zip(value(row, DEVICE_STORED));
        lines.push(vec![
            row.to_owned(),
            number(value(row, INSTRUCTIONS), 3),
            number(value(row, REPS), 3),
            number(value(row, LOADED), 2),
            number(value(row, STORED), 2),
            number(device.map(|(loaded, stored)| loaded + stored), 2),
            number(value(row, PER_PACKET), 0),
            number(value(row, DOORBELL_WRITES), 0),
            number(value(row, INTERRUPTS), 0),
            number(allocations.map(|(pages, net_iovs)| pages + net_iovs), 2),
            number(ratio(Some(own), work(base)), 2),
            number(ratio(work(TODAY), Some(own)), 2),
        ]);
    }
    lines
}

/// What it costs to give tokens back in batches, next to the same with those of each read.
fn by_token_batch(figures: &[Figure], mtu: u32, io: u32) -> Vec<Vec<String>> {
    let value = |row: &str, figure: &str| find(figures, row, mtu, io, figure);
    let mut lines = Vec::new();
    for scenario in SCENARIOS {
        let batch = match scenario.token_batch {
            Some(batch) => batch.to_string(),
            None if scenario.name == TOKENS_BY_READ => {
                let read = value(scenario.name, FRAGMENTS).zip(value(scenario.name, READS));
                let tokens = read.map_or(0.0, |(fragments, reads)| fragments / reads);
                format!("those of a read, {tokens:.1}")
            }
            None => continue,
        };
        if value(scenario.name, INSTRUCTIONS).is_none() {
            continue;
        }
        let of_row = |(figure, digits)| number(value(scenario.name, figure), digits);
        let columns = [(INSTRUCTIONS, 3), (REPS, 3), (LOADED, 2), (STORED, 2)];
        lines.push(std::iter::once(batch).chain(columns.map(of_row)).collect());
    }
    // With no other there is nothing to compare.
    if lines.len() < 2 {
        lines.clear();
    }
    lines
}

fn wire_columns() -> Vec<String> {
    let columns = [
        "goodput on a paced wire",
        "Mbit/s",
        "ceiling",
        "share",
        "sent again",
    ];
    columns.map(str::to_owned).to_vec()
}

/// Goodput, where the wire has a rate.
fn on_paced_wire(figures: &[Figure], mtu: u32, io: u32) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.wire.is_some()) {
        let value = |figure: &str| find(figures, scenario.name, mtu, io, figure);
        let Some(share) = value(GOODPUT_SHARE) else {
            continue;
        };
        let megabits = |figure: &str| number(value(figure).map(|bits| bits / 1e6), 3);
        lines.push(vec![
            scenario.name.to_owned(),
            megabits(GOODPUT),
            megabits(GOODPUT_CEILING),
            format!("{:.2} %", share * 100.0),
            number(value(RETRANSMITS), 0),
        ]);
    }
    lines
}

fn number(value: Option<f64>, digits: usize) -> String {
    match value {
        Some(value) => format!("{value:.digits$}"),
        None => "–".to_owned(),
    }
}

/// What each part did: the sum of some figures.
fn parts(figures: &[Figure], mtu: u32, io: u32, sum: &[&str], digits: usize) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.is_way()) {
        let mut parts = vec![0.0; PARTS.len()];
        let mut measured = false;
        for figure in sum {
            let values = by_part(figures, scenario.name, mtu, io, figure);
            measured |= !values.is_empty();
            parts
                .iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum += value);
        }
        if measured {
            let cells = parts.iter().map(|value| number(Some(*value), digits));
            lines.push(
                std::iter::once(scenario.name.to_owned())
                    .chain(cells)
                    .collect(),
            );
        }
    }
    lines
}

/// A table whose columns are as wide as they must be.
pub(crate) fn table(head: &[String], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        let cells = cells.chain(head.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let line = |cells: &[String]| {
        let mut text = String::from("|");
        for (column, cell) in cells.iter().enumerate() {
            let width = width(column);
            if column == 0 {
                text.push_str(&format!(" {cell:<width$} |"));
            } else {
                text.push_str(&format!(" {cell:>width$} |"));
            }
        }
        text + "\n"
    };
    let mut text = line(head);
    text.push('|');
    for column in 0..head.len() {
        let dashes = "-".repeat(width(column) + 1);
        text.push_str(&if column == 0 {
            format!("{dashes}-|")
        } else {
            format!("{dashes}:|")
        });
    }
    text.push('\n');
    lines.iter().for_each(|cells| text.push_str(&line(cells)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let head = ["a".to_owned(), "wide head".to_owned()];
        let text = table(&head, &[vec!["long name".to_owned(), "1.0".to_owned()]]);
        assert_eq!(
            text,
            "| a         | wide head |\n|-----------|----------:|\n| long name |       1.0 |\n"
        );
    }
}
