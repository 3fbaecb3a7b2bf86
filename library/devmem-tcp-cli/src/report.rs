// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a run showed: as text, JSON or CSV.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use devmem_tcp::way::Way;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::exit;
use crate::flow::Totals;

/// How to print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Csv,
}

/// What a run showed. Names and units are part of the tool's interface.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// `listen` or `connect`.
    command: &'static str,
    /// How payload was to be moved.
    mode: String,
    flows: u32,
    /// Payload in bytes.
    bytes: u64,
    /// The same by the way that it took.
    ways: BTreeMap<Way, u64>,
    /// Fragments received, or sends that were completed.
    pieces: u64,
    /// From the first bytes to the last, in seconds; of `connect`, until the peer has read them.
    seconds: f64,
    /// Of what came in that time: not with a listener's first read, whose bytes had waited for it.
    bits_per_second: f64,
    /// Time of a CPU that this process took in user space, in seconds.
    cpu_user_seconds: f64,
    /// The same in the kernel; what interrupts took is not in it.
    cpu_system_seconds: f64,
    /// Whether payload came, was compared with what its seed makes of it, and is the same.
    valid: Option<bool>,
    /// Where it was not.
    mismatch: Option<String>,
    latency: Option<Latency>,
}

/// Round trips, in nanoseconds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Latency {
    count: u64,
    min_ns: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
}

impl From<&Histogram<u64>> for Latency {
    fn from(times: &Histogram<u64>) -> Self {
        Self {
            count: times.len(),
            min_ns: times.min(),
            p50_ns: times.value_at_quantile(0.5),
            p90_ns: times.value_at_quantile(0.9),
            p99_ns: times.value_at_quantile(0.99),
            p999_ns: times.value_at_quantile(0.999),
            max_ns: times.max(),
        }
    }
}

impl Report {
    pub(crate) fn new(
        command: &'static str,
        mode: &impl ValueEnum,
        flows: u32,
        totals: &Totals,
        validated: bool,
    ) -> Self {
        let bytes = totals.ways.total();
        let seconds = totals.elapsed.as_secs_f64();
        let (user, system) = cpu_time();
        Self {
            command,
            mode: mode
                .to_possible_value()
                .map_or_else(String::new, |mode| mode.get_name().to_owned()),
            flows,
            bytes,
            ways: totals.ways.iter().collect(),
            pieces: totals.pieces,
            seconds,
            bits_per_second: if seconds > 0.0 {
                totals.timed as f64 * 8.0 / seconds
            } else {
                0.0
            },
            cpu_user_seconds: user.as_secs_f64(),
            cpu_system_seconds: system.as_secs_f64(),
            valid: validated.then_some(bytes > 0 && totals.mismatch.is_none()),
            mismatch: totals.mismatch.map(|mismatch| mismatch.to_string()),
            latency: None,
        }
    }

    /// Adds round trips.
    pub(crate) fn with_latency(mut self, times: &Histogram<u64>) -> Self {
        self.latency = (!times.is_empty()).then(|| times.into());
        self
    }

    /// Prints it; returns the exit code.
    pub(crate) fn print(&self, format: Format) -> Result<u8> {
        match format {
            Format::Text => self.print_text(),
            Format::Json => println!("{}", serde_json::to_string(self)?),
            Format::Csv => self.print_csv()?,
        }
        Ok(match self.valid {
            Some(false) => exit::FAILED,
            _ => exit::HOLDS,
        })
    }

    fn print_text(&self) {
        println!(
            "{} bytes in {:.3} s, {:.3} Mbit/s, {} flows, {}",
            self.bytes,
            self.seconds,
            self.bits_per_second / 1e6,
            self.flows,
            self.mode
        );
        let ways: Vec<_> = self
            .ways
            .iter()
            .filter(|(_, bytes)| **bytes > 0)
            .map(|(way, bytes)| format!("{way} {bytes}"))
            .collect();
        println!("bytes by way: {}; pieces: {}", ways.join(", "), self.pieces);
        println!(
            "CPU: {:.3} s in user space, {:.3} s in the kernel",
            self.cpu_user_seconds, self.cpu_system_seconds
        );
        if let Some(latency) = &self.latency {
            let us = |ns: u64| ns as f64 / 1e3;
            println!(
                "{} round trips, us: least {:.1}, median {:.1}, 90 % {:.1}, 99 % {:.1}, 99.9 % {:.1}, most {:.1}",
                latency.count,
                us(latency.min_ns),
                us(latency.p50_ns),
                us(latency.p90_ns),
                us(latency.p99_ns),
                us(latency.p999_ns),
                us(latency.max_ns)
            );
        }
        match (&self.mismatch, self.valid) {
            (Some(mismatch), _) => println!("wrong: {mismatch}"),
            (None, Some(true)) => println!("all bytes are those of the seed"),
            (None, Some(false)) => println!("no bytes came that could be those of the seed"),
            (None, None) => {}
        }
    }

    fn print_csv(&self) -> Result<()> {
        let (names, values): (Vec<_>, Vec<_>) = self.fields()?.into_iter().unzip();
        println!("{}\n{}", names.join(","), values.join(","));
        Ok(())
    }

    /// The same fields, nested ones joined by a dot, and their values: of each report the same, so that lines can
    /// be joined.
    fn fields(&self) -> Result<Vec<(String, String)>> {
        let mut report = serde_json::to_value(self)?;
        if self.latency.is_none() {
            let mut none = serde_json::to_value(Latency::default())?;
            for (_, value) in none.as_object_mut().into_iter().flatten() {
                *value = serde_json::Value::Null;
            }
            report["latency"] = none;
        }
        let mut fields = Vec::new();
        flatten("", &report, &mut fields);
        Ok(fields)
    }
}

fn flatten(name: &str, value: &serde_json::Value, fields: &mut Vec<(String, String)>) {
    use serde_json::Value;
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let name = match name {
                "" => key.clone(),
                name => format!("{name}.{key}"),
            };
            flatten(&name, value, fields);
        }),
        Value::Null => fields.push((name.to_owned(), String::new())),
        Value::String(text) => fields.push((
            name.to_owned(),
            format!("\"{}\"", text.replace('"', "\"\"")),
        )),
        other => fields.push((name.to_owned(), other.to_string())),
    }
}

/// What this process took of the CPUs so far, in user space and in the kernel.
fn cpu_time() -> (Duration, Duration) {
    // SAFETY: `rusage` is plain old data, for which zeros are valid, and which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let duration = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    (duration(usage.ru_utime), duration(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use devmem_tcp::way::ByWay;

    use super::*;

    fn report(mismatch: bool) -> Report {
        let mut ways = ByWay::default();
        ways.add(Way::Direct, 1_000_000);
        ways.add(Way::Linear, 24);
        let mismatch = payload::Payload::new(1)
            .check(0, &[0])
            .err()
            .filter(|_| mismatch);
        let totals = Totals {
            ways,
            pieces: 3,
            mismatch,
            timed: 1_000_000,
            elapsed: Duration::from_millis(500),
        };
        Report::new("listen", &Format::Json, 2, &totals, true)
    }

    #[test]
    fn figures_and_units_are_those_of_the_totals() {
        let value = serde_json::to_value(report(false)).expect("JSON");
        assert_eq!(value["bytes"], 1_000_024);
        assert_eq!(value["ways"]["linear"], 24);
        assert_eq!(value["bits_per_second"], 16e6);
        assert_eq!(value["valid"], true);
        assert_eq!(
            report(false).print(Format::Json).expect("printed"),
            exit::HOLDS
        );
    }

    #[test]
    fn wrong_payload_is_named_and_fails_the_run() {
        let wrong = report(true);
        assert!(
            wrong
                .mismatch
                .as_ref()
                .is_some_and(|text| text.contains("byte 0"))
        );
        assert_eq!(wrong.print(Format::Csv).expect("printed"), exit::FAILED);
    }

    #[test]
    fn nothing_is_not_valid() {
        let none = Totals {
            ways: ByWay::default(),
            pieces: 0,
            mismatch: None,
            timed: 0,
            elapsed: Duration::ZERO,
        };
        let report = Report::new("listen", &Format::Json, 1, &none, true);
        assert_eq!(report.print(Format::Text).expect("printed"), exit::FAILED);
    }

    #[test]
    fn csv_has_a_value_for_each_name() {
        let fields = report(true).fields().expect("JSON");
        let get = |name: &str| {
            fields
                .iter()
                .find(|(it, _)| it == name)
                .map(|(_, it)| it.as_str())
        };
        assert_eq!(get("ways.direct"), Some("1000000"));
        assert_eq!(get("ways.unsteered"), Some("0"));
        let mut times = Histogram::new(3).expect("a histogram");
        times.record(5).expect("it is recorded");
        let measured = report(true).with_latency(&times).fields().expect("JSON");
        let names = |fields: &[(String, String)]| -> Vec<String> {
            fields.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&measured), names(&fields), "lines of several runs");
        assert!(get("mismatch").is_some_and(|text| text.starts_with('"')));
    }
}
