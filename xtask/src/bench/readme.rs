// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the README says of the figures.

use super::figures::{Figure, INSTRUCTIONS, LOADED, REPS, STORED, find};

/// The ways of a byte into and out of an accelerator, as the README tells them: rows and words.
const WAYS: [(&str, &str); 3] = [
    ("igb + copy", "C `igb`, ordinary TCP, and copies"),
    (
        "rigb devmem, accelerator, 16K",
        "`rigb`, device memory TCP, 16 KiB buffers",
    ),
    (
        "rigb zcrx + devmem TX, accelerator, 16K",
        "`rigb`, io_uring zero-copy receive and device memory TCP",
    ),
];

/// What the README says of `figures`; `None` if a row is missing.
pub(crate) fn summary(figures: &[Figure]) -> Option<String> {
    let of = |row: &str, names: [&str; 2]| -> Option<f64> {
        let values = names.map(|name| find(figures, row, 9000, 64 << 10, name));
        Some(values[0]? + values[1]?)
    };
    let mut text = "| data path into and out of an accelerator | instructions | \
                    loaded + stored by the CPU |\n|---|---|---|\n"
        .to_owned();
    let mut ways = Vec::new();
    for (row, words) in WAYS {
        let (work, memory) = (of(row, [INSTRUCTIONS, REPS])?, of(row, [LOADED, STORED])?);
        text.push_str(&format!("| {words} | {work:.2} | {memory:.1} bytes |\n"));
        ways.push((work, memory));
    }
    let (copy, best) = (ways.first()?, ways.last()?);
    text.push_str(&format!(
        "\nSo the copy costs {:.1} times the instructions of the last row and {:.1} times its memory \
         traffic.\nOrdinary TCP takes {:.2} instructions with `igb` and {:.2} with `rigb`.\n",
        copy.0 / best.0,
        copy.1 / best.1,
        of("igb", [INSTRUCTIONS, REPS])?,
        of("rigb", [INSTRUCTIONS, REPS])?,
    ));
    Some(text)
}

#[cfg(test)]
mod tests {
    use provision::files;

    use super::*;

    #[test]
    fn the_readme_says_what_the_committed_figures_are() {
        let root = crate::project::root().unwrap();
        let figures: Vec<Figure> =
            files::read_json(&root.join("Documentation/performance.json")).unwrap();
        let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
        let summary = summary(&figures).unwrap();
        assert!(
            readme.contains(&summary),
            "`cargo xtask bench --document` did not write this:\n{summary}"
        );
    }

    #[test]
    fn without_a_row_the_readme_stays_as_it_is() {
        assert_eq!(summary(&[]), None);
    }
}
