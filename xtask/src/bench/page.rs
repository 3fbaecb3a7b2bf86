// SPDX-License-Identifier: MIT OR Apache-2.0

//! Figures as a page with plots: one file that needs nothing else.

use std::fmt::Write as _;

use super::figures::{
    Figure, GOODPUT_SHARE, INSTRUCTIONS, LOADED, PACKETS, REPS, STORED, by_part, find, sizes,
};
use super::parts::PARTS;
use super::scenario::{RESTART, SCENARIOS, Scenario, size};
use super::svg::{Bar, bars, curves, escape};

/// What others are compared with.
const BASE: &str = "igb";
const TODAY: &str = "igb + copy";

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b1f24; --faint: #d5dae1; --paper: #fff }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --faint: #3a424d; --paper: #15181c } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 64rem; margin: 2rem auto; padding: 0 1rem }
svg { width: 100%; height: auto } svg text { fill: var(--ink); font: 12px system-ui, sans-serif }
svg .rule { stroke: var(--faint) } h2 { margin-top: 3rem } figcaption { margin: 0 0 .4rem }
figure { margin: 0 0 1.8rem } td { padding: .1rem 2rem .1rem 0 }
td + td { text-align: right }
";

/// The page.
pub(crate) fn page(figures: &[Figure], versions: &str) -> String {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.push_str("<title>What a byte costs</title>\n");
    let _ = writeln!(html, "<style>{STYLE}</style>\n<h1>What a byte costs</h1>");
    let _ = writeln!(
        html,
        "<p>What one processor does to send and to receive a byte. {}. \
         Documentation/performance.md explains the figures.</p>",
        escape(versions)
    );
    let sizes = sizes(figures);
    for &(mtu, io) in &sizes {
        let _ = writeln!(html, "<h2>MTU {mtu}, reads and writes of {}</h2>", size(io));
        for (caption, chart) in charts(figures, mtu, io) {
            html.push_str(&captioned(&caption, &chart));
        }
    }
    html.push_str(&over_size(figures, &sizes));
    html.push_str(&restarts(figures));
    html.push_str("</html>\n");
    html
}

/// A chart below what it shows.
fn captioned(caption: &str, chart: &str) -> String {
    let caption = escape(caption);
    format!("<figure><figcaption>{caption}</figcaption>{chart}</figure>\n")
}

fn charts(figures: &[Figure], mtu: u32, io: u32) -> Vec<(String, String)> {
    let value = |row: &str, figure: &str| find(figures, row, mtu, io, figure);
    let work = |row: &str| Some(value(row, INSTRUCTIONS)? + value(row, REPS)?);
    let traffic = |row: &str| Some(value(row, LOADED)? + value(row, STORED)?);
    let mut charts = Vec::new();
    for (what, measure) in [
        (
            "work (instructions and rep iterations)",
            &work as &dyn Fn(&str) -> Option<f64>,
        ),
        ("memory traffic of the processor", &traffic),
    ] {
        for base in [BASE, TODAY] {
            let Some(of_base) = measure(base) else {
                continue;
            };
            let own: Vec<_> = SCENARIOS
                .iter()
                .filter(|scenario| scenario.is_plain())
                .filter_map(|scenario| Some((scenario.name, measure(scenario.name)?)))
                .map(|(name, own)| Bar::plain(name, own / of_base))
                .collect();
            let caption = format!("{what}, as a multiple of that of {base}; less is better");
            charts.push((caption, bars(&own, &[])));
        }
    }
    let parts: Vec<_> = SCENARIOS
        .iter()
        .filter(|scenario| scenario.is_plain())
        .filter_map(|scenario| per_packet(figures, scenario.name, mtu, io))
        .collect();
    if !parts.is_empty() {
        let caption = "instructions per packet, by part of the kernel".to_owned();
        charts.push((caption, bars(&parts, PARTS)));
    }
    for (caption, differs) in [
        (
            "work per payload byte, by flows on one queue",
            (|s: &Scenario| s.flows != 1) as fn(&Scenario) -> bool,
        ),
        ("work per payload byte, by tokens returned together", |s| {
            s.token_batch.is_some()
        }),
    ] {
        let own = details(work, differs);
        if !own.is_empty() {
            charts.push((caption.to_owned(), bars(&own, &[])));
        }
    }
    let share = |scenario: &Scenario| {
        let share = value(scenario.name, GOODPUT_SHARE)?;
        Some(Bar::plain(scenario.name, share * 100.0))
    };
    let shares: Vec<_> = SCENARIOS.iter().filter_map(share).collect();
    if !shares.is_empty() {
        let caption = "goodput on a paced wire, in percent of its ceiling".to_owned();
        charts.push((caption, bars(&shares, &[])));
    }
    charts
}

/// Each scenario that others differ from in a detail, and those others.
fn details(work: impl Fn(&str) -> Option<f64>, differs: impl Fn(&Scenario) -> bool) -> Vec<Bar> {
    let bar = |scenario: &Scenario| Some(Bar::plain(scenario.name, work(scenario.name)?));
    let mut bars = Vec::new();
    for plain in SCENARIOS.iter().filter(|scenario| scenario.is_plain()) {
        let others = SCENARIOS.iter().filter(|s| differs(s) && s.goes_as(plain));
        let others: Vec<_> = others.filter_map(bar).collect();
        if !others.is_empty() {
            bars.extend(bar(plain));
            bars.extend(others);
        }
    }
    bars
}

/// A row's instructions for each packet that was received, by part.
fn per_packet(figures: &[Figure], row: &str, mtu: u32, io: u32) -> Option<Bar> {
    let packets = find(figures, row, mtu, io, PACKETS)?;
    let bytes = f64::from(1 << 20) / packets;
    let parts = by_part(figures, row, mtu, io, INSTRUCTIONS);
    let pieces: Vec<_> = parts.iter().map(|per_byte| per_byte * bytes).collect();
    (!pieces.is_empty()).then(|| Bar {
        name: row.to_owned(),
        pieces,
    })
}

/// What a restart of a queue costs, in words.
fn restarts(figures: &[Figure]) -> String {
    let of_restart: Vec<_> = figures.iter().filter(|f| f.row == RESTART).collect();
    if of_restart.is_empty() {
        return String::new();
    }
    let line = |f: &&Figure| format!("<tr><td>{}<td>{:.0}\n", escape(&f.figure), f.value);
    let lines: String = of_restart.iter().map(line).collect();
    format!("<h2>Restart of a queue</h2>\n<table>\n{lines}</table>\n")
}

/// Work over message size, for each MTU that several sizes were measured at.
fn over_size(figures: &[Figure], sizes: &[(u32, u32)]) -> String {
    let mut mtus: Vec<u32> = sizes.iter().map(|(mtu, _)| *mtu).collect();
    mtus.dedup();
    let mut html = String::new();
    for mtu in mtus {
        let ios: Vec<u32> = sizes
            .iter()
            .filter(|(of, _)| *of == mtu)
            .map(|(_, io)| *io)
            .collect();
        if ios.len() < 2 {
            continue;
        }
        let ticks: Vec<String> = ios.iter().map(|io| size(*io)).collect();
        let lines: Vec<(String, Vec<Option<f64>>)> = SCENARIOS
            .iter()
            .filter(|scenario| scenario.is_plain())
            .map(|scenario| {
                let value = |io, figure| find(figures, scenario.name, mtu, io, figure);
                let work = |io: &u32| Some(value(*io, INSTRUCTIONS)? + value(*io, REPS)?);
                (scenario.name.to_owned(), ios.iter().map(work).collect())
            })
            // A point is no curve.
            .filter(|(_, values): &(_, Vec<_>)| values.iter().flatten().count() > 1)
            .collect();
        let _ = writeln!(
            html,
            "<h2>MTU {mtu}, over the size of reads and writes</h2>\n{}",
            captioned(
                "work (instructions and rep iterations) per payload byte",
                &curves(&ticks, &lines)
            )
        );
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_no_other_file() {
        let figure = |row: &str, figure: &str, value: f64| Figure {
            row: row.to_owned(),
            mtu: 9000,
            io: 64 << 10,
            figure: figure.to_owned(),
            value,
            ..Figure::default()
        };
        let figures = [
            figure("igb", INSTRUCTIONS, 0.7),
            figure("igb", REPS, 0.25),
            figure("rigb", INSTRUCTIONS, 0.6),
            figure("rigb", REPS, 0.25),
            figure("rigb", PACKETS, 1024.0),
        ];
        let part = |part: &&str| Figure {
            part: Some((*part).to_owned()),
            ..figure("rigb", INSTRUCTIONS, 0.5)
        };
        let of_parts: Vec<_> = PARTS.iter().map(part).collect();
        let packet = per_packet(&[&figures[..], &of_parts].concat(), "rigb", 9000, 64 << 10);
        assert_eq!(packet.unwrap().pieces, vec![512.0; PARTS.len()]);
        let html = page(&figures, "Linux & QEMU");
        assert!(html.contains("Linux &amp; QEMU") && html.contains("<svg"));
        assert!(html.contains("0.89"), "the ratio of rigb to igb: {html}");
        for word in ["src=", "href=", "url(", "@import"] {
            assert!(!html.contains(word), "{word}");
        }
    }
}
