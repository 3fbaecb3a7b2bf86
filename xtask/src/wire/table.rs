// SPDX-License-Identifier: MIT OR Apache-2.0

//! Figures as tables of Markdown.

use super::figures::{Figures, Goodput, Models, Placement, Repeats};
use crate::bench::table::table;

/// The tables of all that was measured.
pub(crate) fn tables(figures: &Figures) -> String {
    let mut text = format!("{}.\n", figures.versions);
    let mut add = |head: &[&str], lines: Vec<Vec<String>>| {
        if !lines.is_empty() {
            let head: Vec<_> = head.iter().map(|&cell| cell.to_owned()).collect();
            text.push('\n');
            text.push_str(&table(&head, &lines));
        }
    };
    add(
        &[
            "MTU",
            "on a paced wire",
            "Mbit/s",
            "share of the ceiling",
            "least",
            "most",
            "sent again",
            "host busy",
        ],
        figures.paced.iter().map(paced).collect(),
    );
    add(
        &[
            "lost",
            "reordered",
            "MTU 1500",
            "Mbit/s",
            "least",
            "most",
            "sent again",
            "host busy",
        ],
        figures.impaired.iter().map(impaired).collect(),
    );
    add(
        &[
            "MTU",
            "64 MiB, or a boot",
            "ours, s",
            "QEMU's, s",
            "QEMU's ÷ ours",
            "least",
            "most",
        ],
        figures.models.iter().map(models).collect(),
    );
    add(
        &[
            "MTU",
            "buffers",
            "lost",
            "reordered",
            "tokens",
            "pairs in order",
            "bytes in runs",
            "contiguous bytes",
        ],
        figures.placements.iter().map(placement).collect(),
    );
    text
}

fn paced(row: &Goodput) -> Vec<String> {
    let share = row.share;
    vec![
        row.mtu.to_string(),
        row.way.clone(),
        megabits(row.goodput.median),
        percent(share.median),
        percent(share.low),
        percent(share.high),
        count(row.sent_again),
        percent(row.busy.median),
    ]
}

fn impaired(row: &Goodput) -> Vec<String> {
    let goodput = row.goodput;
    vec![
        part(row.loss_ppm),
        part(row.reorder_ppm),
        row.way.clone(),
        megabits(goodput.median),
        megabits(goodput.low),
        megabits(goodput.high),
        count(row.sent_again),
        percent(row.busy.median),
    ]
}

fn models(row: &Models) -> Vec<String> {
    vec![
        row.mtu.to_string(),
        row.what.clone(),
        format!("{:.2}", row.ours.median),
        format!("{:.2}", row.igb.median),
        format!("{:.2}", row.ratio.median),
        format!("{:.2}", row.ratio.low),
        format!("{:.2}", row.ratio.high),
    ]
}

fn placement(row: &Placement) -> Vec<String> {
    vec![
        row.mtu.to_string(),
        format!("{}K", row.buffer >> 10),
        part(row.loss_ppm),
        part(row.reorder_ppm),
        match row.recycled {
            true => "returned".to_owned(),
            false => "kept".to_owned(),
        },
        percent(row.pairs),
        percent(row.in_runs),
        percent(row.contiguous),
    ]
}

fn megabits(bits: f64) -> String {
    format!("{:.3}", bits / 1e6)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn count(repeats: Repeats) -> String {
    format!("{:.0}", repeats.median)
}

/// Parts of a million.
fn part(ppm: u32) -> String {
    match ppm {
        0 => "0".to_owned(),
        10 => "10^-5".to_owned(),
        100 => "10^-4".to_owned(),
        1000 => "10^-3".to_owned(),
        10_000 => "10^-2".to_owned(),
        other => format!("{other} ppm"),
    }
}
