// SPDX-License-Identifier: MIT OR Apache-2.0

//! What wires do to their frames.

use std::{fmt, str::FromStr, time::Duration};

/// The properties of each wire of a machine, alike in both directions: how fast it is, how long it is, and
/// what happens to frames, in parts per million.
///
/// The fate of a frame depends on the seed, the wire's direction and the frame's number in it alone. The
/// default does nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// Bits per second, not zero. A limited number of frames waits, and what finds no room is dropped.
    pub rate: Option<u64>,
    /// How long a frame is on its way after it has left, in whole microseconds.
    pub delay: Duration,
    /// Frames that don't arrive.
    pub loss_ppm: u32,
    /// Frames that one to three later ones overtake, if these come soon.
    pub reorder_ppm: u32,
    /// Frames that arrive twice.
    pub duplicate_ppm: u32,
    /// Frames of which a bit is flipped: the receiver counts a wrong check sequence, and drops them.
    pub corrupt_ppm: u32,
    /// What decides which frames.
    pub seed: u64,
}

impl Link {
    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let shares = [
            self.loss_ppm,
            self.reorder_ppm,
            self.duplicate_ppm,
            self.corrupt_ppm,
        ];
        if self.rate == Some(0) {
            return Some("a link's rate is not zero".to_owned());
        }
        if u32::try_from(self.delay.as_micros()).is_err() {
            return Some(format!("a link's delay is not {:?}", self.delay));
        }
        let wrong = shares.into_iter().find(|share| *share > 1_000_000)?;
        Some(format!("{wrong} parts of a million are too many"))
    }
}

/// As options of a wire of our NICs (harness/device/src/arguments.rs).
impl fmt::Display for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rate) = self.rate {
            write!(formatter, "rate={rate},")?;
        }
        write!(
            formatter,
            "delay-us={},loss-ppm={},reorder-ppm={},duplicate-ppm={},corrupt-ppm={},seed={}",
            self.delay.as_micros(),
            self.loss_ppm,
            self.reorder_ppm,
            self.duplicate_ppm,
            self.corrupt_ppm,
            self.seed
        )
    }
}

/// As [`Display`](fmt::Display) writes it; what is not named does nothing.
impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut link = Self::default();
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
}

fn number<N: FromStr>(option: &str, value: &str) -> Result<N, String> {
    let wrong = |_| format!("\"{option}\" has no number that is possible there");
    value.parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_options_of_a_wire() {
        let link = Link {
            rate: Some(1_000_000),
            delay: Duration::from_millis(2),
            loss_ppm: 1,
            reorder_ppm: 2,
            duplicate_ppm: 3,
            corrupt_ppm: 4,
            seed: 5,
        };
        assert_eq!(
            link.to_string(),
            "rate=1000000,delay-us=2000,loss-ppm=1,reorder-ppm=2,duplicate-ppm=3,corrupt-ppm=4,seed=5"
        );
        assert_eq!(link.fault(), None);
        assert_eq!(link.to_string().parse(), Ok(link));
        assert_eq!("seed=0".parse(), Ok(Link::default()));
    }

    #[test]
    fn an_impossible_link_is_refused() {
        let link = Link::default();
        for wrong in [
            Link {
                rate: Some(0),
                ..link
            },
            Link {
                corrupt_ppm: 1_000_001,
                ..link
            },
            Link {
                delay: Duration::MAX,
                ..link
            },
        ] {
            assert!(wrong.fault().is_some(), "{wrong:?}");
        }
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
            let error = text.parse::<Link>().unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
