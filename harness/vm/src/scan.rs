// SPDX-License-Identifier: MIT OR Apache-2.0

//! Complaints in a kernel's log.

use std::fmt;

/// What a line must contain to be a complaint, and how it is called in reports.
const COMPLAINTS: &[(&str, &str)] = &[
    ("BUG:", "bug"),
    ("kernel BUG at", "bug"),
    ("WARNING:", "warning"),
    ("RIP:", "trace"),
    ("Call Trace:", "trace"),
    ("Oops", "oops"),
    ("general protection fault", "oops"),
    ("Kernel panic", "panic"),
    ("agent panicked", "panic of the agent"),
    ("segfault at", "crash of the agent"),
    ("detected stall", "stall"),
    ("self-detected stall", "stall"),
    ("rcu: INFO:", "stall"),
    ("soft lockup", "stall"),
    ("blocked for more than", "hung task"),
    ("NETDEV WATCHDOG", "transmit timeout"),
    ("circular locking dependency", "lockdep"),
    ("possible recursive locking", "lockdep"),
    ("inconsistent lock state", "lockdep"),
    ("irq lock inversion", "lockdep"),
    ("invalid wait context", "lockdep"),
    ("held lock freed", "lockdep"),
    ("bad unlock balance", "lockdep"),
    ("lock held when returning to user space", "lockdep"),
    ("suspicious RCU usage", "lockdep"),
    ("unreferenced object 0x", "kmemleak"),
    ("DMA-API:", "DMA debugging"),
    ("page fault from EP", "IOMMU"),
    ("UBSAN:", "UBSAN"),
    ("KASAN:", "KASAN"),
    ("KFENCE:", "KFENCE"),
    ("ODEBUG:", "object debugging"),
    ("refcount_t:", "reference count"),
    ("ref_tracker:", "reference count"),
    ("page_pool_release_retry() stalled", "page pool leak"),
    ("unregister_netdevice: waiting for", "reference count"),
    ("list_add corruption", "list corruption"),
    ("list_del corruption", "list corruption"),
    ("Bad page state", "page state"),
    ("Found non-dmabuf skb with net_iov", "mixed skb"),
    ("Unknown symbol", "module"),
    ("disagrees about version of symbol", "module"),
    ("rust_kernel: panicked", "panic of Rust code"),
];

/// Lines of a healthy boot that contain one of the [`COMPLAINTS`].
const HARMLESS: &[&str] = &[
    "DMA-API: preallocated",
    "DMA-API: debugging enabled",
    "DMA-API: debugging disabled",
    "kmemleak: Kernel memory leak detector initialized",
    // The objects themselves are looked at.
    "new suspected memory leaks",
];

/// After this line processors are stopped one by one, while the others still balance their load: one
/// that wakes another's task warns of an interrupt to a processor that is offline. It has nothing to
/// do with what ran before (`native_stop_other_cpus()` in arch/x86/kernel/smp.c).
const POWER_DOWN: &str = "reboot: Power down";
const RESCHEDULE_OFFLINE: &str = "at native_smp_send_reschedule+";

/// First line of a report that WARN and BUG print, and the last one.
const CUT_HERE: &str = "------------[ cut here ]------------";
const END_TRACE: &str = "---[ end trace";

/// What DMA debugging blames a driver for is the text of a warning, and comes before it. The line to
/// cut at comes before both, but is not important enough for the console.
const DMA_ERROR: &[&str] = &["DMA-API: ", ": device driver "];

/// What the line that begins a report contains, and what its last line contains.
const REPORTS: &[(&[&str], &str)] = &[
    (&[CUT_HERE], END_TRACE),
    (DMA_ERROR, END_TRACE),
    (&["BUG: KASAN:"], "=================================="),
    (&["WARNING: possible"], "</TASK>"),
    (&["WARNING: inconsistent lock state"], "</TASK>"),
    (&["WARNING: "], END_TRACE),
];

/// A complaint of the kernel, with all lines that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind of complaint.
    pub kind: &'static str,
    /// Number of its first line, from 1.
    pub line: usize,
    /// Its lines: the whole report where the kernel marks its start and end, else one.
    pub text: String,
}

impl Finding {
    /// Whether it contains all of `parts`.
    #[must_use]
    pub fn has(&self, parts: &[impl AsRef<str>]) -> bool {
        has(&self.text, parts)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}: {}", self.kind, self.line, self.text)
    }
}

/// All complaints in a log, in their order.
#[must_use]
pub fn scan(log: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut report: Option<Report> = None;
    for (index, line) in log.lines().enumerate() {
        let number = index + 1;
        // Within the report of a warning there is the warning.
        let warned = report.as_ref().is_some_and(|report| report.warned);
        let cut = line.contains(CUT_HERE);
        let begins = REPORTS
            .iter()
            .find(|(begin, _)| has(line, begin) && (!warned || cut));
        if let Some((begin, end)) = begins {
            // Reports can start within each other when processors complain together.
            findings.extend(report.take().map(Report::finish));
            report = Some(Report {
                line: number,
                lines: if cut { Vec::new() } else { vec![line] },
                end,
                warned: cut || *begin == DMA_ERROR,
            });
        } else if let Some(open) = &mut report {
            open.lines.push(line);
            if line.contains(open.end) {
                findings.extend(report.take().map(Report::finish));
            }
        } else if let Some(kind) = complaint(line) {
            findings.push(Finding {
                kind,
                line: number,
                text: line.to_owned(),
            });
        }
    }
    findings.extend(report.map(Report::finish));
    if let Some(off) = log.lines().position(|line| line.contains(POWER_DOWN)) {
        findings
            .retain(|found| found.line <= off || !found.has(&["WARNING: ", RESCHEDULE_OFFLINE]));
    }
    findings
}

/// An unfinished report.
struct Report<'a> {
    /// Number of its first line.
    line: usize,
    lines: Vec<&'a str>,
    /// What its last line contains.
    end: &'static str,
    /// Whether it began with what comes before a warning.
    warned: bool,
}

impl Report<'_> {
    /// It is a complaint whatever it says.
    fn finish(self) -> Finding {
        let kind = self.lines.iter().find_map(|line| complaint(line));
        Finding {
            kind: kind.unwrap_or("report"),
            line: self.line,
            text: self.lines.join("\n"),
        }
    }
}

fn has(text: &str, parts: &[impl AsRef<str>]) -> bool {
    parts.iter().all(|part| text.contains(part.as_ref()))
}

fn complaint(line: &str) -> Option<&'static str> {
    if HARMLESS.iter().any(|harmless| line.contains(harmless)) {
        return None;
    }
    let found = COMPLAINTS
        .iter()
        .find(|(pattern, _)| line.contains(pattern));
    found.map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a boot of the guest kernel: what must not be taken for a complaint.
    const BOOT: &str = "\
[    0.000000] Linux version 7.3.4 (build@host) (gcc (Debian 12.2.0-14) 12.2.0) #1 SMP
[    0.000000] Command line: console=ttyS0 panic=-1
[    0.012033] rcu: Hierarchical RCU implementation.
[    0.012040] rcu: \tRCU restricting CPUs from NR_CPUS=8 to nr_cpu_ids=2.
[    0.013115] rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies.
[    0.040201] DMA-API: preallocated 65536 debug entries
[    0.040202] DMA-API: debugging enabled by kernel config
[    0.052000] kmemleak: Kernel memory leak detector initialized (mem pool available: 15706)
[    0.093114] x86/mm: Checked W+X mappings: passed, no W+X pages found.
[    0.331200] NET: Registered PF_INET6 protocol family
[    0.401122] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
[    0.801122] igb 0000:01:00.0: added PHC on eth0
[    0.901122] RAMDISK: [mem 0x3fe00000-0x3fffffff]
";

    fn kinds(log: &str) -> Vec<&'static str> {
        scan(log).into_iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn a_healthy_boot_has_no_complaints() {
        assert_eq!(scan(BOOT), []);
    }

    #[test]
    fn a_processor_that_is_stopped_may_be_woken_when_the_power_goes_down_and_not_before() {
        let warning = "\
[    5.3] WARNING: arch/x86/kernel/apic/ipi.c:71 at native_smp_send_reschedule+0x23/0x30, CPU#2
[    5.4] RIP: 0010:native_smp_send_reschedule+0x28/0x30
[    5.4] ---[ end trace 0000000000000000 ]---
";
        let down = "[    5.2] reboot: Power down\n";
        assert_eq!(scan(&format!("{BOOT}{down}{warning}")), []);
        assert_eq!(kinds(&format!("{BOOT}{warning}{down}")), ["warning"]);
        let other =
            "[    5.3] WARNING: drivers/x.c:1 at x+0x1/0x2\n[    5.4] ---[ end trace 0 ]---\n";
        assert_eq!(kinds(&format!("{BOOT}{down}{other}")), ["warning"]);
    }

    #[test]
    fn an_access_that_an_iommu_refuses_is_a_complaint() {
        let fault = "[    2.9] virtio_iommu virtio0: page fault from EP 256 at 0xff54b950 []\n";
        assert_eq!(kinds(&format!("{BOOT}{fault}")), ["IOMMU"]);
    }

    #[test]
    fn a_warning_is_one_finding_with_its_whole_report() {
        let log = format!(
            "{BOOT}[    5.1] ------------[ cut here ]------------
[    5.1] WARNING: net/core/skbuff.c:3411 at skb_checksum+0x3a1/0x3b0, CPU#1: agent/71
[    5.1] Modules linked in: rigb(O)
[    5.1] RIP: 0010:skb_checksum+0x3a1/0x3b0
[    5.1] Call Trace:
[    5.1]  <IRQ>
[    5.1] ---[ end trace 0000000000000000 ]---
[    5.2] igb: going on
"
        );
        let findings = scan(&log);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].kind, "warning");
        assert!(findings[0].text.contains("skb_checksum"));
        assert!(findings[0].text.contains("end trace"));
        assert!(!findings[0].text.contains("going on"));
        assert_eq!(findings[0].line, BOOT.lines().count() + 1);
    }

    #[test]
    fn a_report_without_a_line_to_cut_at_is_one_finding_and_hides_no_other() {
        let log = "\
[   36.0] DMA-API: pci 0000:01:00.0: device driver has pending DMA allocations
[   36.0] WARNING: kernel/dma/debug.c:896 at dma_debug_device_change+0x210/0x620, CPU#0: x/93
[   36.0] RIP: 0010:dma_debug_device_change+0x3a4/0x620
[   36.0] Call Trace:
[   36.0] ---[ end trace 0000000000000000 ]---
[   36.1] UBSAN: shift-out-of-bounds in x.c:1:2
[   36.8] ==================================================================
[   36.8] BUG: KASAN: slab-use-after-free in dma_direct_unmap_sg+0x11a/0x4c0
[   36.8] Call Trace:
[   36.9] ==================================================================
[   36.9] BUG: sleeping function called from invalid context at mm/x.c:1
[   42.4] ======================================================
[   42.4] WARNING: possible circular locking dependency detected
[   42.4] but task is already holding lock:
[   42.4] Call Trace:
[   42.4]  </TASK>
[   42.5] NETDEV WATCHDOG
[   42.6] WARNING: possible recursive locking detected
[   42.7] BUG: KASAN: null-ptr-deref in x
";
        let found = [
            ("DMA debugging", 5),
            ("UBSAN", 1),
            ("bug", 3),
            ("bug", 1),
            ("warning", 4),
            ("transmit timeout", 1),
            ("warning", 1),
            ("bug", 1),
        ];
        let lines = |finding: Finding| (finding.kind, finding.text.lines().count());
        assert_eq!(scan(log).into_iter().map(lines).collect::<Vec<_>>(), found);
    }

    #[test]
    fn a_report_without_an_end_is_still_found() {
        let log = "[ 5.1] ------------[ cut here ]------------\n[ 5.1] kernel BUG at mm/slub.c:1!";
        assert_eq!(kinds(log), ["bug"]);
    }

    #[test]
    fn every_kind_of_complaint_is_found() {
        let samples = [
            (
                "[ 1.0] BUG: kernel NULL pointer dereference, address: 0000000000000008",
                "bug",
            ),
            (
                "[ 1.0] BUG: sleeping function called from invalid context at mm/x.c:1",
                "bug",
            ),
            ("[ 1.0] Oops: Oops: 0000 [#1] SMP", "oops"),
            (
                "[ 1.0] Kernel panic - not syncing: Fatal exception",
                "panic",
            ),
            (
                "[ 1.0] WARNING: possible circular locking dependency detected",
                "warning",
            ),
            ("[ 1.0] WARNING: suspicious RCU usage", "warning"),
            (
                "[ 1.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
                "stall",
            ),
            (
                "[ 1.0] watchdog: BUG: soft lockup - CPU#0 stuck for 26s!",
                "bug",
            ),
            (
                "[ 1.0] INFO: task agent:1 blocked for more than 120 seconds.",
                "hung task",
            ),
            (
                "[ 1.0] kmemleak: unreferenced object 0xffff888007a1c000 (size 1024):",
                "kmemleak",
            ),
            (
                "[ 1.0] DMA-API: igb 0000:01:00.0: device driver has pending DMA",
                "DMA debugging",
            ),
            (
                "[ 1.0] UBSAN: array-index-out-of-bounds in x.c:1:2",
                "UBSAN",
            ),
            (
                "[ 1.0] page_pool_release_retry() stalled pool shutdown: id 3",
                "page pool leak",
            ),
            (
                "[ 1.0] unregister_netdevice: waiting for eth0 to become free",
                "reference count",
            ),
            (
                "[ 1.0] igb 0000:01:00.0 eth0: NETDEV WATCHDOG: CPU: 1",
                "transmit timeout",
            ),
            (
                "[ 1.0] rust_kernel: panicked at rigb/rx.rs:1:1:",
                "panic of Rust code",
            ),
            (
                "[ 1.0] rigb: Unknown symbol netdev_rx_queue_restart (err -2)",
                "module",
            ),
        ];
        for (line, kind) in samples {
            assert_eq!(kinds(line), [kind], "{line}");
        }
    }
}
