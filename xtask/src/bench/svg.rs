// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plots as SVG: bars in pieces, and curves.

use std::fmt::Write as _;

use super::page::escape;

const WIDTH: f64 = 860.0;
/// Room for names at the left, and for numbers at the right.
const LEFT: f64 = 170.0;
const RIGHT: f64 = 60.0;
const BAR: f64 = 22.0;
const LEGEND: f64 = 18.0;

/// Colours that are told apart by people who see red and green alike (Okabe and Ito).
const COLOURS: &[&str] = &[
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#f0e442",
    "#444c9c",
];

/// A bar, of one piece or more.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) pieces: Vec<f64>,
}

impl Bar {
    /// A bar in one piece.
    pub(crate) fn plain(name: &str, value: f64) -> Self {
        Self {
            name: name.to_owned(),
            pieces: vec![value],
        }
    }
}

/// Horizontal bars, and a legend where their pieces have names.
pub(crate) fn bars(bars: &[Bar], pieces: &[&str]) -> String {
    let sum = |bar: &Bar| bar.pieces.iter().sum::<f64>();
    let longest = bars.iter().map(sum).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LEFT - RIGHT) / longest;
    let rows = pieces.len().div_ceil(3) as f64;
    let height = bars.len() as f64 * BAR + rows * LEGEND + 8.0;
    let mut svg = open(height);
    for (index, bar) in bars.iter().enumerate() {
        let y = index as f64 * BAR;
        text(&mut svg, LEFT - 8.0, y + 15.0, "end", &bar.name);
        let mut x = LEFT;
        for (value, colour) in bar.pieces.iter().zip(COLOURS.iter().cycle()) {
            let width = value * scale;
            let _ = write!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" \
                 fill=\"{colour}\"/>",
                y + 3.0,
                BAR - 6.0
            );
            x += width;
        }
        text(
            &mut svg,
            x + 6.0,
            y + 15.0,
            "start",
            &format!("{:.2}", sum(bar)),
        );
    }
    let below = bars.len() as f64 * BAR + 8.0;
    for (index, (name, colour)) in pieces.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let x = LEFT + (index % 3) as f64 * 230.0;
        legend(
            &mut svg,
            x,
            below + (index / 3) as f64 * LEGEND,
            name,
            colour,
        );
    }
    svg + "</svg>"
}

/// Curves over the same ticks, from 0 up; where a value is missing there is a gap.
pub(crate) fn curves(ticks: &[String], lines: &[(String, Vec<Option<f64>>)]) -> String {
    const HEIGHT: f64 = 260.0;
    let values = lines.iter().flat_map(|(_, values)| values.iter().flatten());
    let highest = values.copied().fold(f64::MIN_POSITIVE, f64::max);
    let right = WIDTH - LEFT - 20.0;
    let at = |index: usize, value: f64| {
        let step = (right - 50.0) / (ticks.len().max(2) - 1) as f64;
        let y = HEIGHT - 24.0 - value / highest * (HEIGHT - 40.0);
        (50.0 + index as f64 * step, y)
    };
    let mut svg = open(HEIGHT);
    for quarter in 0..=4 {
        let value = highest * f64::from(quarter) / 4.0;
        let (x, y) = at(0, value);
        let _ = write!(
            svg,
            "<line class=\"rule\" x1=\"{x:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        );
        text(&mut svg, 42.0, y + 4.0, "end", &format!("{value:.2}"));
    }
    for (index, tick) in ticks.iter().enumerate() {
        text(&mut svg, at(index, 0.0).0, HEIGHT - 6.0, "middle", tick);
    }
    for (number, (name, values)) in lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let mut path = String::new();
        let mut pen = 'M';
        for (index, value) in values.iter().enumerate() {
            let Some(value) = value else {
                pen = 'M';
                continue;
            };
            let (x, y) = at(index, *value);
            let _ = write!(path, "{pen}{x:.1} {y:.1}");
            pen = 'L';
            let _ = write!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
        let _ = write!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        legend(
            &mut svg,
            right + 20.0,
            number as f64 * LEGEND + 10.0,
            name,
            colour,
        );
    }
    svg + "</svg>"
}

fn open(height: f64) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\">")
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, what: &str) {
    let what = escape(what);
    let _ = write!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>"
    );
}

fn legend(svg: &mut String, x: f64, y: f64, name: &str, colour: &str) {
    let _ = write!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
        y + 2.0
    );
    text(svg, x + 15.0, y + 11.0, "start", name);
}
