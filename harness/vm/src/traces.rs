// SPDX-License-Identifier: MIT OR Apache-2.0

//! Traces of a payload in a guest's memory.

use std::os::unix::fs::FileExt;

use payload::search::WINDOW;
pub use payload::search::{Search, Trace, bytes};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use vm_memory::{Address, GuestMemoryBackend, GuestMemoryRegion};

use crate::{Error, GuestMemory, Result};

/// Bytes of memory that are looked at in one go.
const BLOCK: usize = 1 << 20;

/// All traces that `search` finds in `memory`, in order of address. Parts of the memory that were never
/// written are skipped.
///
/// # Errors
///
/// [`Error::Memory`] when the memory cannot be read.
pub fn find(search: &Search, memory: &GuestMemory) -> Result<Vec<Trace>> {
    let mut traces = Vec::new();
    let mut block = Vec::new();
    for region in memory.memory().iter() {
        let address = region.start_addr().raw_value();
        let bytes = region.len();
        let failed = |message: String| Error::Memory {
            name: "a search",
            bytes,
            message,
        };
        let backing = region.file_offset();
        let backing = backing.ok_or_else(|| failed("there is no file behind it".to_owned()))?;
        let (file, first) = (backing.file(), backing.start());
        let end = first + bytes;
        let mut at = first;
        while at < end {
            // Unwritten memory is a hole of the file.
            at = match seek(file, SeekFrom::Data(at)) {
                Ok(data) => data,
                Err(Errno::NXIO) => break,
                Err(errno) => return Err(failed(format!("SEEK_DATA: {errno}"))),
            };
            let hole = seek(file, SeekFrom::Hole(at));
            let hole = hole.map_err(|errno| failed(format!("SEEK_HOLE: {errno}")))?;
            while at < hole.min(end) {
                // A window that starts in this block ends in it, or right behind.
                let len = (hole.min(end) - at).min((BLOCK + WINDOW) as u64);
                block.resize(len as usize, 0);
                let read = file.read_exact_at(&mut block, at);
                read.map_err(|error| failed(format!("reading at {at:#x}: {error}")))?;
                search.find_in(&block, address + (at - first), &mut traces);
                at += len.min(BLOCK as u64);
            }
        }
    }
    Ok(traces)
}

#[cfg(test)]
mod tests {
    use protocol::Payload;

    use super::*;
    use crate::memory::Backing;

    fn payload(len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        Payload::new(7).fill(0, &mut bytes);
        bytes
    }

    fn memory() -> GuestMemory {
        Backing::create("test", 8 << 20)
            .unwrap()
            .at(1 << 32)
            .unwrap()
    }

    #[test]
    fn what_was_never_there_is_not_found() {
        let memory = memory();
        let mut other = vec![0; 1 << 20];
        Payload::new(8).fill(0, &mut other);
        memory.write(1 << 32, &other).unwrap();
        let search = Search::new(payload(1 << 20));
        assert_eq!(find(&search, &memory).unwrap(), []);
    }

    #[test]
    fn runs_are_reported_whole_across_blocks_and_holes() {
        let memory = memory();
        let payload = payload(3 << 20);
        let start = 1 << 32;
        // Over two blocks' ends, and at odd places.
        memory
            .write(start + 12_345, &payload[..(2 << 20) + 77])
            .unwrap();
        // Pieces that follow each other in memory, but not in the payload, as frames do.
        let pieces = [(1_500_001, 1448), (1_000, 1448), (2_000_000, 64)];
        let mut at = start + (5 << 20) + 3;
        let mut expected = vec![Trace {
            address: start + 12_345,
            payload_offset: 0,
            len: (2 << 20) + 77,
        }];
        for (offset, len) in pieces {
            memory.write(at, &payload[offset..offset + len]).unwrap();
            expected.push(Trace {
                address: at,
                payload_offset: offset as u64,
                len: len as u64,
            });
            at += len as u64;
        }
        let traces = find(&Search::new(payload), &memory).unwrap();
        assert_eq!(traces, expected);
        assert_eq!(bytes(&traces), (2 << 20) + 77 + 2 * 1448 + 64);
    }

    #[test]
    fn a_payload_that_is_shorter_than_a_window_leaves_no_trace() {
        let memory = memory();
        memory.write(1 << 32, &payload(20)).unwrap();
        assert_eq!(find(&Search::new(payload(20)), &memory).unwrap(), []);
        assert_eq!(find(&Search::new(Vec::new()), &memory).unwrap(), []);
    }
}
