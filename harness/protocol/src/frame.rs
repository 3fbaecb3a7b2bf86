// SPDX-License-Identifier: MIT OR Apache-2.0

//! Framing: one JSON value per line, lines bounded.

use std::io::{self, BufRead, Read, Write};

use serde::{Serialize, de::DeserializeOwned};

/// Longest line that is accepted, in bytes without the newline.
///
/// The largest message is [`crate::Event::DmaBuf`] of a fully scattered dma-buf: 25 bytes for
/// each 4 KiB page, so this is enough for 1 GiB.
pub const MAX_LINE: usize = 8 << 20;

/// Why a message could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The channel itself failed.
    #[error("the control channel failed: {0}")]
    Io(#[from] io::Error),
    /// A line is longer than [`MAX_LINE`]; the stream cannot be followed any further.
    #[error("a message is longer than the limit of {MAX_LINE} bytes")]
    TooLong,
    /// The channel ended within a line.
    #[error("the control channel ended within a message")]
    Truncated,
    /// A line is not a message. The stream itself is intact: the next line can be read.
    #[error("not a message ({error}): {line}")]
    Malformed {
        /// What the parser says.
        error: serde_json::Error,
        /// The start of the line.
        line: String,
    },
}

/// Writes `message` as one line and flushes.
///
/// # Errors
///
/// [`FrameError::TooLong`] before anything was written, [`FrameError::Io`] of the writer.
pub fn write<T: Serialize>(writer: &mut impl Write, message: &T) -> Result<(), FrameError> {
    let mut line = serde_json::to_vec(message).map_err(io::Error::from)?;
    if line.len() > MAX_LINE {
        return Err(FrameError::TooLong);
    }
    line.push(b'\n');
    writer.write_all(&line)?;
    writer.flush()?;
    Ok(())
}

/// Reads one line into `line`, without its newline. `false` when the channel ended before it.
///
/// # Errors
///
/// [`FrameError::TooLong`], [`FrameError::Truncated`], [`FrameError::Io`].
pub fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, FrameError> {
    line.clear();
    let limit = MAX_LINE as u64 + 1;
    reader.by_ref().take(limit).read_until(b'\n', line)?;
    match line.last() {
        None => Ok(false),
        Some(b'\n') => {
            line.pop();
            Ok(true)
        }
        Some(_) if line.len() > MAX_LINE => Err(FrameError::TooLong),
        Some(_) => Err(FrameError::Truncated),
    }
}

/// Parses the line of a message.
///
/// # Errors
///
/// [`FrameError::Malformed`].
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(line).map_err(|error| FrameError::Malformed {
        error,
        line: String::from_utf8_lossy(line).chars().take(200).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Request, agent::Hello};

    #[test]
    fn a_message_survives_the_channel() {
        let call = Call {
            id: 7,
            request: Request::Hello(Hello {}),
        };
        let mut channel = Vec::new();
        write(&mut channel, &call).unwrap();
        write(&mut channel, &call).unwrap();

        let mut reader = channel.as_slice();
        let mut line = Vec::new();
        for _ in 0..2 {
            assert!(read_line(&mut reader, &mut line).unwrap());
            let read: Call = parse(&line).unwrap();
            assert_eq!(read.id, 7);
            assert!(matches!(read.request, Request::Hello(_)));
        }
        assert!(!read_line(&mut reader, &mut line).unwrap());
    }

    #[test]
    fn an_endless_line_is_refused_instead_of_filling_the_memory() {
        let mut reader = io::BufReader::new(io::repeat(b'x'));
        let mut line = Vec::new();
        assert!(matches!(
            read_line(&mut reader, &mut line),
            Err(FrameError::TooLong)
        ));
        assert!(line.len() <= MAX_LINE + 1);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_read() {
        let mut data = vec![b'1'; MAX_LINE];
        data.push(b'\n');
        let mut line = Vec::new();
        assert!(read_line(&mut data.as_slice(), &mut line).unwrap());
        assert_eq!(line.len(), MAX_LINE);
    }

    #[test]
    fn a_cut_line_is_an_error_not_a_message() {
        let mut line = Vec::new();
        assert!(matches!(
            read_line(&mut b"{\"id\":1".as_slice(), &mut line),
            Err(FrameError::Truncated)
        ));
    }

    #[test]
    fn a_line_that_is_no_message_is_quoted() {
        let error = parse::<Call>(b"garbage").unwrap_err();
        assert!(error.to_string().contains("garbage"), "{error}");
    }
}
