// SPDX-License-Identifier: MIT OR Apache-2.0

//! Capture files, in the classic format that all tools read.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Times are in microseconds.
const MAGIC: u32 = 0xa1b2_c3d4;
const VERSION: (u16, u16) = (2, 4);
const ETHERNET: u32 = 1;

/// Frames are kept to this length where nothing else is said, as by QEMU's `filter-dump`.
pub const SNAP_LENGTH: u32 = 65536;

/// A capture of a wire.
#[derive(Debug)]
pub struct Capture<W = File> {
    file: W,
    snap_length: u32,
    record: Vec<u8>,
}

impl Capture {
    /// Makes the file, or makes it anew.
    ///
    /// # Errors
    ///
    /// When it can't be made.
    pub fn create(path: &Path, snap_length: u32) -> io::Result<Self> {
        Self::new(File::create(path)?, snap_length)
    }
}

impl<W: Write> Capture<W> {
    /// Begins a capture.
    ///
    /// # Errors
    ///
    /// When the header can't be written.
    pub fn new(mut file: W, snap_length: u32) -> io::Result<Self> {
        let mut header = Vec::new();
        header.extend(MAGIC.to_ne_bytes());
        header.extend(VERSION.0.to_ne_bytes());
        header.extend(VERSION.1.to_ne_bytes());
        // UTC, and nothing said about accuracy.
        header.extend([0; 8]);
        header.extend(snap_length.to_ne_bytes());
        header.extend(ETHERNET.to_ne_bytes());
        file.write_all(&header)?;
        Ok(Self {
            file,
            snap_length,
            record: Vec::new(),
        })
    }

    /// Adds a frame, with one write, so that the file ends with a whole one at any time.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn add(&mut self, frame: &[u8], time: SystemTime) -> io::Result<()> {
        let time = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let kept = len.min(self.snap_length);
        self.record.clear();
        // The format's seconds end in 2106.
        for field in [time.as_secs() as u32, time.subsec_micros(), kept, len] {
            self.record.extend(field.to_ne_bytes());
        }
        self.record.extend(
            frame
                .iter()
                .take(usize::try_from(kept).unwrap_or(usize::MAX)),
        );
        self.file.write_all(&self.record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_a_header_and_records() {
        let mut bytes = Vec::new();
        let mut capture = Capture::new(&mut bytes, 4).unwrap();
        let time = UNIX_EPOCH + Duration::new(7, 8_999);
        capture.add(b"abcdef", time).unwrap();
        capture.add(b"xy", time).unwrap();
        let words: Vec<_> = bytes[..40]
            .chunks(4)
            .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        let version = u32::from_ne_bytes([2, 0, 4, 0]);
        assert_eq!(words, [MAGIC, version, 0, 0, 4, 1, 7, 8, 4, 6]);
        assert_eq!(&bytes[40..44], b"abcd");
        assert_eq!(&bytes[60..], b"xy");
    }
}
