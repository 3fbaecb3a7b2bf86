// SPDX-License-Identifier: MIT OR Apache-2.0

//! What `--link` says of the wires.

use std::str::FromStr;
use std::time::Duration;

use vm::Link;

/// A link in the syntax of the program that has our NICs (harness/device/src/arguments.rs).
pub(super) fn parse(text: &str) -> Result<Link, String> {
    let mut link = Link::default();
    for option in text.split(',') {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| format!("\"{option}\" is not as NAME=NUMBER"))?;
        match name {
            "rate" => link.rate = Some(number(option, value)?),
            "delay-us" => link.delay = Duration::from_micros(number(option, value)?),
            "loss-ppm" => link.loss_ppm = number(option, value)?,
            "reorder-ppm" => link.reorder_ppm = number(option, value)?,
            "duplicate-ppm" => link.duplicate_ppm = number(option, value)?,
            "corrupt-ppm" => link.corrupt_ppm = number(option, value)?,
            "seed" => link.seed = number(option, value)?,
            _ => {
                return Err(format!(
                    "\"{name}\" is none of rate, delay-us, loss-ppm, reorder-ppm, duplicate-ppm, \
                     corrupt-ppm and seed"
                ));
            }
        }
    }
    Ok(link)
}

fn number<N: FromStr>(option: &str, value: &str) -> Result<N, String> {
    let wrong = |_| format!("\"{option}\" has no number that is possible there");
    value.parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_as_it_is_written() {
        let link = Link {
            rate: Some(10_000_000),
            delay: Duration::from_millis(2),
            loss_ppm: 1,
            reorder_ppm: 2,
            duplicate_ppm: 3,
            corrupt_ppm: 4,
            seed: 5,
        };
        assert_eq!(parse(&link.to_string()), Ok(link));
        assert_eq!(parse("seed=0"), Ok(Link::default()));
    }

    #[test]
    fn what_is_no_link_is_an_error_that_names_it() {
        for (text, named) in [
            ("", "\"\""),
            ("rate", "\"rate\""),
            ("rate=fast", "\"rate=fast\""),
            ("loss-ppm=-1", "\"loss-ppm=-1\""),
            ("delay=3", "delay-us"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
