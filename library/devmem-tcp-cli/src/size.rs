// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers of bytes, as people write them.

/// Parses `4096`, `64K`, `1M` or `2G` (powers of 1024).
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("\"{text}\" is no number of bytes, as 4096, 64K, 1M or 2G are"))?;
    number
        .checked_mul(1 << unit)
        .ok_or_else(|| format!("{text} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_have_a_unit_and_nothing_else() {
        for (text, bytes) in [("0", 0), ("4096", 4096), ("64k", 65536), ("2G", 2 << 30)] {
            assert_eq!(parse(text), Ok(bytes));
        }
        for text in ["", "K", "-1", "1T", "64 K", "99999999999G"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
