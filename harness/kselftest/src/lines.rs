// SPDX-License-Identifier: MIT OR Apache-2.0

//! Output that comes in pieces, by the line.

/// What came of a line that has not ended.
#[derive(Debug, Default)]
pub struct Lines(Vec<u8>);

impl Lines {
    /// Takes the next piece; returns the lines that it ends, without trailing white space.
    #[must_use]
    pub fn push(&mut self, piece: &[u8]) -> Vec<String> {
        self.0.extend_from_slice(piece);
        let Some(end) = self.0.iter().rposition(|&byte| byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.0.split_off(end + 1);
        let whole = std::mem::replace(&mut self.0, rest);
        let text = String::from_utf8_lossy(&whole);
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// The last line, if it has no end.
    #[must_use]
    pub fn rest(self) -> Option<String> {
        (!self.0.is_empty()).then(|| String::from_utf8_lossy(&self.0).trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_wherever_they_were_cut() {
        let text = "ok 1\n\nnot ok 2 ä\nno end".as_bytes();
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut found: Vec<_> = text
                .chunks(size)
                .flat_map(|piece| lines.push(piece))
                .collect();
            found.extend(lines.rest());
            assert_eq!(found, ["ok 1", "", "not ok 2 ä", "no end"]);
        }
    }
}
