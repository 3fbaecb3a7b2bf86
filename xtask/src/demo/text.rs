// SPDX-License-Identifier: MIT OR Apache-2.0

//! The report as text.

use std::fmt;

use indicatif::HumanBytes;

use super::picture;
use super::report::{Direction, Report};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        picture::transfers(f, self)?;
        let Self { rx, tx, .. } = self;
        let payload = |direction: &Direction| HumanBytes(direction.bytes).to_string();
        let row = |f: &mut fmt::Formatter<'_>, name: &str, rx: &str, tx: &str| {
            writeln!(f, "  {name:22} {rx:>26} {tx:>26}")
        };
        let by_queue = |direction: &Direction| {
            let queues = (0..).zip(&direction.bytes_by_queue);
            let texts: Vec<String> = queues
                .map(|(queue, bytes)| format!("{queue}: {}", HumanBytes(*bytes)))
                .collect();
            texts.join(", ")
        };
        let count = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
        let verified = |direction: &Direction| {
            let yes = if direction.verified {
                "yes, by"
            } else {
                "NO, by"
            };
            let who = direction.verified_by.split(',').next().unwrap_or("");
            format!("{yes} {who}")
        };
        row(f, "", "received", "sent")?;
        row(f, "payload", &payload(rx), &payload(tx))?;
        row(f, "verified byte by byte", &verified(rx), &verified(tx))?;
        row(f, "frame bytes by queue", &by_queue(rx), &by_queue(tx))?;
        row(f, "fragments", &count(rx.fragments), "-")?;
        row(f, "linear bytes", &rx.linear_bytes.to_string(), "-")?;
        row(f, "copied by the kernel", "-", &count(tx.copied))?;
        row(f, "drops", &rx.drops.to_string(), &tx.drops.to_string())?;
        let checksums = |direction: &Direction| {
            format!(
                "{} good, {} bad",
                direction.checksums_good, direction.checksums_bad
            )
        };
        row(f, "checksums by the NIC", &checksums(rx), &checksums(tx))?;
        row(
            f,
            "net_iovs outstanding",
            &self.net_iovs_outstanding.to_string(),
            "",
        )?;

        writeln!(f)?;
        if let Some(compared) = &self.compared {
            picture::compared(f, compared)?;
        }
        let stages: Vec<String> = self
            .stages
            .iter()
            .map(|stage| format!("{} {:.1} s", stage.name, stage.seconds))
            .collect();
        for line in stages.chunks(5) {
            writeln!(f, "  stages   {}", line.join(", "))?;
        }
        writeln!(f, "  seed     {:#x}", self.seed)?;
        let compared = self.compared.as_ref().map(|compared| &compared.logs);
        for logs in [Some(&self.logs), compared].into_iter().flatten() {
            writeln!(f, "  logs     {}", logs.console.display())?;
            for pcap in &logs.pcaps {
                writeln!(f, "  capture  {}", pcap.display())?;
            }
        }
        Ok(())
    }
}
