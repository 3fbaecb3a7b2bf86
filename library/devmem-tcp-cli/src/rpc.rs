// SPDX-License-Identifier: MIT OR Apache-2.0

//! Requests and responses, whose round trips are measured.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::str::FromStr;

use anyhow::{Context, Result};

use crate::{flow::Run, size};

/// Sizes of a request and of its response, in bytes. The response is ordinary payload in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rpc {
    pub(crate) request: u64,
    pub(crate) response: u64,
}

impl FromStr for Rpc {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (request, response) = text.split_once('/').unwrap_or((text, "64"));
        let (request, response) = (size::parse(request)?, size::parse(response)?);
        if request == 0 || response == 0 {
            return Err("a request and a response have one byte at least".to_owned());
        }
        Ok(Self { request, response })
    }
}

impl Rpc {
    /// Responds to the requests that `bytes` more complete, of which `so_far` came before.
    pub(crate) fn respond(self, mut stream: &TcpStream, so_far: u64, bytes: u64) -> Result<()> {
        let complete = (so_far + bytes) / self.request - so_far / self.request;
        let response = vec![0; self.response as usize];
        (0..complete).try_for_each(|_| stream.write_all(&response).context("responding"))
    }

    /// Waits for a response; whether it came, and the run was not ended before.
    pub(crate) fn wait(self, mut stream: &TcpStream, run: &Run) -> Result<bool> {
        let mut left = self.response as usize;
        let mut buffer = [0; 4096];
        while left > 0 {
            let room = left.min(buffer.len());
            match stream.read(&mut buffer[..room]) {
                Ok(0) => anyhow::bail!("the peer closed the connection before it responded"),
                Ok(read) => left -= read,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if run.stopped() {
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("waiting for a response"),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_small_if_its_size_is_not_said() {
        let rpc: Rpc = "64K".parse().expect("a size");
        assert_eq!((rpc.request, rpc.response), (65536, 64));
        assert_eq!("512/1M".parse::<Rpc>().map(|rpc| rpc.response), Ok(1 << 20));
        assert!("0".parse::<Rpc>().is_err());
    }
}
