// SPDX-License-Identifier: MIT OR Apache-2.0

//! The demonstration's results, as text and as JSON.

use serde::Serialize;

use super::compare::Compared;
use super::stage::{Logs, Stage};

/// The outcome, as `--json` writes it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(super) driver: &'static str,
    /// QEMU's name of the NIC, or `nobounce`.
    pub(super) device: Option<String>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn direction() -> Direction {
        Direction {
            bytes: 64,
            verified: true,
            verified_by: "the host, in its memory",
            linear_bytes: 0,
            fragments: Some(3),
            copied: Some(0),
            drops: 0,
            queue: 1,
            bytes_by_queue: vec![0, 70],
            checksums_good: 4,
            checksums_bad: 0,
            elapsed_seconds: 0.5,
        }
    }

    fn report() -> Report {
        Report {
            driver: "rigb",
            device: Some("igb".to_owned()),
            kernel_release: "7.3.4".to_owned(),
            qemu_version: "10.1.0".to_owned(),
            accelerator: "tcg",
            seed: 7,
            mtu: 9000,
            memory: "udmabuf",
            rx: direction(),
            tx: direction(),
            net_iovs_outstanding: 0,
            compared: None,
            stages: vec![Stage {
                name: "boot",
                seconds: 1.0,
            }],
            logs: Logs {
                directory: "vm/run".into(),
                console: "vm/run/console.log".into(),
                transcript: "vm/run/transcript.log".into(),
                pcaps: vec!["vm/run/wire0.pcap".into()],
            },
        }
    }

    #[test]
    fn programs_find_what_they_look_for() {
        let json = serde_json::to_value(report()).unwrap();
        for name in [
            "driver",
            "kernel_release",
            "qemu_version",
            "net_iovs_outstanding",
            "rx",
            "tx",
        ] {
            assert!(json.get(name).is_some(), "no {name} in {json}");
        }
        for way in ["rx", "tx"] {
            for name in ["bytes", "verified", "linear_bytes", "drops", "queue"] {
                assert!(json[way].get(name).is_some(), "no {name} in {way}");
            }
        }
    }

    #[test]
    fn people_find_what_they_look_for() {
        let text = report().to_string();
        for part in [
            "frame bytes by queue",
            "1: 70 B",
            "fragments",
            "net_iovs outstanding",
            "linear bytes",
            "drops",
            "4 good, 0 bad",
            "boot 1.0 s",
            "vm/run/console.log",
            "vm/run/wire0.pcap",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }

    #[test]
    fn nothing_that_is_wrong_passes_for_right() {
        assert!(report().holds());
        let wrongs: [fn(&mut Report); 6] = [
            |report| report.rx.verified = false,
            |report| report.tx.verified = false,
            |report| report.rx.linear_bytes = 1,
            |report| report.tx.copied = Some(1),
            |report| report.rx.checksums_bad = 1,
            |report| report.net_iovs_outstanding = 1,
        ];
        for (n, wrong) in wrongs.into_iter().enumerate() {
            let mut report = report();
            wrong(&mut report);
            assert!(!report.holds(), "number {n}: {report:?}");
        }
    }
}
