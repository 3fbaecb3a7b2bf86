// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the capture of a wire has.

use std::{fs, path::Path, time::Duration};

use protocol::net::Mac;

use crate::Result;

/// Bytes before the first frame of a file, and before each frame.
const FILE_HEADER: usize = 24;
const FRAME_HEADER: usize = 16;

/// A frame in a capture.
#[derive(Debug, Clone, Copy)]
pub struct Captured {
    /// When, since 1970.
    pub time: Duration,
    /// Who sent it.
    pub from: Mac,
    /// How many bytes it has, not all of which are in the capture.
    pub length: u32,
}

/// The frames that a capture has by now, in the classic format with microseconds.
///
/// # Errors
///
/// When the file can't be read.
pub fn captured(file: &Path) -> Result<Vec<Captured>> {
    let bytes = fs::read(file)?;
    let mut rest = bytes.get(FILE_HEADER..).unwrap_or_default();
    let mut frames = Vec::new();
    while let Some((header, behind)) = rest.split_first_chunk::<FRAME_HEADER>() {
        let field = |n: usize| u32::from_ne_bytes(header[4 * n..4 * n + 4].try_into().expect("4"));
        // Of a capture that goes on, the last frame may be there in part.
        let Some((frame, next)) = behind.split_at_checked(field(2) as usize) else {
            break;
        };
        frames.push(Captured {
            time: Duration::new(field(0).into(), field(1) * 1000),
            from: Mac(frame[6..12].try_into().expect("6")),
            length: field(3),
        });
        rest = next;
    }
    Ok(frames)
}
