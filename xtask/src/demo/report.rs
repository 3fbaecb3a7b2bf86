// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the demonstration found, for people and for programs.

use std::fmt;
use std::path::PathBuf;

use indicatif::HumanBytes;
use serde::Serialize;

use super::compare::Compared;
use super::picture;

/// The outcome, as `--json` writes it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(super) driver: &'static str,
    pub(super) kernel_release: String,
    pub(super) qemu_version: String,
    /// What executed the guest: `kvm` or `tcg`.
    pub(super) accelerator: &'static str,
    /// Seed of the received payload; that of the sent one is the next number.
    pub(super) seed: u64,
    pub(super) mtu: u32,
    /// Where the payload's memory is: `accelerator`, or `udmabuf`, which is the guest's RAM.
    pub(super) memory: &'static str,
    pub(super) rx: Direction,
    pub(super) tx: Direction,
    /// Pieces of dma-bufs that are not back in their page pools at the end.
    pub(super) net_iovs_outstanding: u64,
    /// Only with an accelerator.
    pub(super) compared: Option<Compared>,
    pub(super) stages: Vec<Stage>,
    pub(super) logs: Logs,
}

/// One of the two transfers.
#[derive(Debug, Serialize)]
pub(super) struct Direction {
    /// Payload bytes that arrived.
    pub(super) bytes: u64,
    /// All of them were compared with the seed's payload, and right.
    pub(super) verified: bool,
    pub(super) verified_by: &'static str,
    /// Payload bytes that arrived outside the dma-buf.
    pub(super) linear_bytes: u64,
    /// Pieces of the dma-buf that the receiver was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fragments: Option<u64>,
    /// Sends that the kernel copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copied: Option<u64>,
    /// Packets that the NIC dropped.
    pub(super) drops: u64,
    /// The queue that carried the payload.
    pub(super) queue: u32,
    /// Bytes of frames on each queue, headers included.
    pub(super) bytes_by_queue: Vec<u64>,
    /// Received packets whose checksum the NIC found right.
    pub(super) checksums_good: u64,
    /// Received packets whose checksum the NIC found wrong.
    pub(super) checksums_bad: u64,
    pub(super) elapsed_seconds: f64,
}

/// How long a part took.
#[derive(Debug, Serialize)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
}

/// Where to look.
#[derive(Debug, Serialize)]
pub(super) struct Logs {
    pub(super) directory: PathBuf,
    pub(super) console: PathBuf,
    pub(super) transcript: PathBuf,
    pub(super) pcaps: Vec<PathBuf>,
}

impl Logs {
    pub(super) fn of(verdict: vm::Verdict) -> Self {
        Self {
            directory: verdict.directory,
            console: verdict.console,
            transcript: verdict.transcript,
            pcaps: verdict.pcaps,
        }
    }
}

impl Report {
    /// Whether all is as it must be.
    pub(super) fn holds(&self) -> bool {
        let clean = |direction: &Direction| {
            direction.verified
                && direction.linear_bytes == 0
                && direction.copied.unwrap_or(0) == 0
                && direction.checksums_bad == 0
        };
        clean(&self.rx)
            && clean(&self.tx)
            && self.net_iovs_outstanding == 0
            && self.compared.as_ref().is_none_or(Compared::holds)
    }
}

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
