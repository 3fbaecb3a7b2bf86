// SPDX-License-Identifier: MIT OR Apache-2.0

//! The file format of trace-cmd, version 6: trace-cmd.dat.v6(5).

use std::collections::BTreeMap;
use std::io::{Result, Write};

/// Pages of the ring buffer begin at such offsets, and are as long.
const PAGE: usize = 4096;

/// What a kernel has recorded, and what it takes to read it: files of tracefs.
#[derive(Debug, Default)]
pub(super) struct Recording<'a> {
    /// `events/header_page`.
    pub(super) header_page: &'a [u8],
    /// `events/header_event`.
    pub(super) header_event: &'a [u8],
    /// `events/ftrace/*/format`.
    pub(super) ftrace: Vec<&'a [u8]>,
    /// `events/SYSTEM/*/format`, by system.
    pub(super) events: BTreeMap<String, Vec<&'a [u8]>>,
    /// `/proc/kallsyms`.
    pub(super) symbols: &'a [u8],
    /// `printk_formats`.
    pub(super) formats: &'a [u8],
    /// `saved_cmdlines`.
    pub(super) commands: &'a [u8],
    /// `per_cpu/cpu*/trace_pipe_raw`.
    pub(super) processors: Vec<&'a [u8]>,
}

/// Writes a file that `trace-cmd report` reads.
pub(super) fn write(to: &mut impl Write, recording: &Recording<'_>) -> Result<()> {
    let mut head = Vec::new();
    head.extend(b"\x17\x08\x44tracing6\0");
    // Little-endian, with long of 8 bytes.
    head.extend([0, 8]);
    head.extend((PAGE as u32).to_le_bytes());
    head.extend(b"header_page\0");
    add_long(&mut head, recording.header_page);
    head.extend(b"header_event\0");
    add_long(&mut head, recording.header_event);
    add_count(&mut head, recording.ftrace.len());
    for format in &recording.ftrace {
        add_long(&mut head, format);
    }
    add_count(&mut head, recording.events.len());
    for (system, formats) in &recording.events {
        head.extend(system.as_bytes());
        head.push(0);
        add_count(&mut head, formats.len());
        for format in formats {
            add_long(&mut head, format);
        }
    }
    add_short(&mut head, recording.symbols);
    add_short(&mut head, recording.formats);
    add_long(&mut head, recording.commands);
    add_count(&mut head, recording.processors.len());
    head.extend(b"options  \0");
    // There are none.
    head.extend(0_u16.to_le_bytes());
    head.extend(b"flyrecord\0");

    let table = head.len() + 16 * recording.processors.len();
    let mut offset = table.next_multiple_of(PAGE);
    for pages in &recording.processors {
        head.extend((offset as u64).to_le_bytes());
        head.extend((pages.len() as u64).to_le_bytes());
        offset += pages.len().next_multiple_of(PAGE);
    }
    write_padded(to, &head)?;
    for pages in &recording.processors {
        write_padded(to, pages)?;
    }
    to.flush()
}

fn add_count(to: &mut Vec<u8>, count: usize) {
    to.extend((count as u32).to_le_bytes());
}

/// A part whose size is a word of 32 bits.
fn add_short(to: &mut Vec<u8>, part: &[u8]) {
    add_count(to, part.len());
    to.extend(part);
}

/// A part whose size is a word of 64 bits.
fn add_long(to: &mut Vec<u8>, part: &[u8]) {
    to.extend((part.len() as u64).to_le_bytes());
    to.extend(part);
}

fn write_padded(to: &mut impl Write, bytes: &[u8]) -> Result<()> {
    to.write_all(bytes)?;
    let padding = bytes.len().next_multiple_of(PAGE) - bytes.len();
    to.write_all(&vec![0; padding])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_where_the_table_says() {
        let recording = Recording {
            processors: vec![&[1; 2 * PAGE], &[], &[3; PAGE]],
            ..Recording::default()
        };
        let mut file = Vec::new();
        write(&mut file, &recording).unwrap();
        let at = file
            .windows(10)
            .position(|window| window == b"flyrecord\0")
            .unwrap();
        let word = |at: usize| {
            let bytes = file[at..at + 8].try_into().unwrap();
            usize::try_from(u64::from_le_bytes(bytes)).unwrap()
        };
        let parts = [0, 1, 2].map(|cpu| {
            let entry = at + 10 + 16 * cpu;
            let (offset, size) = (word(entry), word(entry + 8));
            assert_eq!(offset % PAGE, 0);
            &file[offset..offset + size]
        });
        assert_eq!(parts, [&[1; 2 * PAGE][..], &[], &[3; PAGE]]);
    }
}
