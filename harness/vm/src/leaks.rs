// SPDX-License-Identifier: MIT OR Apache-2.0

//! Complaints in a report of kmemleak.

use crate::scan::Finding;

/// What the report of an object starts with.
const START: &str = "unreferenced object 0x";

/// One finding for each object, with where it was allocated. `line` is that of the report.
pub(crate) fn findings(report: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (index, line) in report.lines().enumerate() {
        if line.starts_with(START) {
            findings.push(Finding {
                kind: "kmemleak",
                line: index + 1,
                text: line.to_owned(),
            });
        } else if let Some(finding) = findings.last_mut() {
            finding.text.push('\n');
            finding.text.push_str(line);
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_a_finding_with_its_backtrace() {
        let report = "\
unreferenced object 0xffff888007a1c000 (size 1024):
  comm \"SetUp\", pid 81, jiffies 4294903302
  backtrace (crc 3b1a):
    krealloc_node_align_noprof+0x1b1/0x3a0
    rigb_open+0x11/0x20 [rigb]
unreferenced object 0xffff888007a1d000 (size 64):
  comm \"SetUp\", pid 81, jiffies 4294903303
";
        let found = findings(report);
        assert_eq!(found.len(), 2);
        assert!(found[0].text.ends_with("rigb_open+0x11/0x20 [rigb]"));
        assert!(
            found[1]
                .text
                .starts_with("unreferenced object 0xffff888007a1d000")
        );
        assert_eq!((found[0].line, found[1].line), (1, 6));
        assert!(findings("").is_empty());
    }
}
