// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plots as SVG: bars in pieces, and curves.

use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
/// Room for numbers at the right.
const RIGHT: f64 = 60.0;
const BAR: f64 = 22.0;
const LEGEND: f64 = 18.0;
/// Most of what a character takes, on average over a name.
const CHARACTER: f64 = 7.2;

/// Colours that are also distinguishable with red-green colour blindness (Okabe and Ito).
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

/// Room for the longest of these.
fn room<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    longest as f64 * CHARACTER
}

/// Horizontal bars, and a legend where their pieces have names.
pub(crate) fn bars(bars: &[Bar], pieces: &[&str]) -> String {
    let sum = |bar: &Bar| bar.pieces.iter().sum::<f64>();
    let longest = bars.iter().map(sum).fold(f64::MIN_POSITIVE, f64::max);
    let left = room(bars.iter().map(|bar| bar.name.as_str())) + 8.0;
    let scale = (WIDTH - left - RIGHT) / longest;
    let below = bars.len() as f64 * BAR + 8.0;
    let (legend, legend_height) = legend(pieces, below);
    let height = below + legend_height;
    let mut svg = open(height);
    for (index, bar) in bars.iter().enumerate() {
        let y = index as f64 * BAR;
        text(&mut svg, left - 8.0, y + 15.0, "end", &bar.name);
        let mut x = left;
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
    svg + &legend + "</svg>"
}

/// Curves over the same ticks, from 0 up; where a value is missing there is a gap.
pub(crate) fn curves(ticks: &[String], lines: &[(String, Vec<Option<f64>>)]) -> String {
    const HEIGHT: f64 = 260.0;
    let values = lines.iter().flat_map(|(_, values)| values.iter().flatten());
    let highest = values.copied().fold(f64::MIN_POSITIVE, f64::max);
    let right = WIDTH - 20.0;
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let (legend, legend_height) = legend(&names, HEIGHT + 8.0);
    let at = |index: usize, value: f64| {
        let step = (right - 60.0) / (ticks.len().max(2) - 1) as f64;
        let y = HEIGHT - 24.0 - value / highest * (HEIGHT - 40.0);
        (50.0 + index as f64 * step, y)
    };
    let mut svg = open(HEIGHT + 8.0 + legend_height);
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
    for (number, (_, values)) in lines.iter().enumerate() {
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
    }
    svg + &legend + "</svg>"
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

/// Names and their colours, in as many columns as there is room for, and its height.
fn legend(names: &[&str], y: f64) -> (String, f64) {
    const MARK: f64 = 15.0;
    let width = room(names.iter().copied()) + MARK + 12.0;
    let columns = ((WIDTH / width) as usize).clamp(1, names.len().max(1));
    let mut svg = String::new();
    for (index, (name, colour)) in names.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let x = (index % columns) as f64 * width;
        let y = y + (index / columns) as f64 * LEGEND;
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
            y + 2.0
        );
        text(&mut svg, x + MARK, y + 11.0, "start", name);
    }
    (svg, names.len().div_ceil(columns) as f64 * LEGEND)
}

/// Text as HTML and SVG have it.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
