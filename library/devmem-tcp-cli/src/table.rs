// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables of text, as wide as a terminal usually is.

/// Columns of a line.
const WIDTH: usize = 100;
/// Between two columns.
const GAP: &str = "  ";
/// The least that is left of a column whose text is broken into lines.
const NARROWEST: usize = 20;

/// Aligns rows. The text of column `broken` is broken into lines, so that a row is no longer than 100
/// characters if its words allow it. Columns of numbers are aligned to the right.
pub(crate) fn table(rows: &[Vec<String>], broken: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns)
        .map(|column| cells(rows, column).map(width).max().unwrap_or(0))
        .collect();
    if let Some(broken) = broken.filter(|&column| column < columns) {
        let others: usize = widths.iter().sum::<usize>() - widths[broken];
        let room = WIDTH.saturating_sub(others + GAP.len() * (columns - 1));
        widths[broken] = widths[broken].min(room.max(NARROWEST));
    }
    // The first row is the head.
    let numeric: Vec<bool> = (0..columns)
        .map(|column| cells(rows, column).skip(1).all(is_number))
        .collect();
    let mut text = String::new();
    for row in rows {
        let lines: Vec<Vec<String>> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| match broken {
                Some(broken) if broken == column => wrap(cell, widths[column]),
                _ => vec![cell.clone()],
            })
            .collect();
        for line in 0..lines.iter().map(Vec::len).max().unwrap_or(0) {
            let cells = lines.iter().enumerate().map(|(column, lines)| {
                let cell = lines.get(line).map_or("", String::as_str);
                let pad = " ".repeat(widths[column].saturating_sub(width(cell)));
                match numeric[column] {
                    true => pad + cell,
                    false => cell.to_owned() + &pad,
                }
            });
            let joined = cells.collect::<Vec<_>>().join(GAP);
            text += joined.trim_end();
            text.push('\n');
        }
    }
    text
}

/// Breaks text between words, into lines of at most `room` characters unless a word is longer.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| !line.is_empty());
        match line {
            Some(line) if width(line) + 1 + width(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(word.to_owned()),
            None => lines[0] = word.to_owned(),
        }
    }
    lines
}

fn cells(rows: &[Vec<String>], column: usize) -> impl Iterator<Item = &str> {
    rows.iter()
        .filter_map(move |row| row.get(column).map(String::as_str))
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn is_number(cell: &str) -> bool {
    cell == "-" || cell.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|&cell| cell.to_owned()).collect()
    }

    #[test]
    fn columns_are_aligned_and_numbers_to_the_right() {
        let rows = [
            row(&["queue", "packets"]),
            row(&["rx 0", "7"]),
            row(&["rx 10", "-"]),
        ];
        assert_eq!(
            table(&rows, None),
            "queue  packets\nrx 0         7\nrx 10        -\n"
        );
    }

    #[test]
    fn a_long_text_is_broken_so_that_lines_fit_a_terminal() {
        let long = "one two three ".repeat(30);
        let text = table(
            &[
                row(&["a", "b", "c"]),
                row(&["ok", &long, "ethtool -g eth0"]),
            ],
            Some(1),
        );
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(text.matches("three").count(), 30);
        assert_eq!(text.matches("ethtool -g eth0").count(), 1);
    }
}
