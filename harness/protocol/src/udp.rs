// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbered datagrams.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Failure, Ns};

/// Receives numbered datagrams from a [`UdpSource`] until stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UdpSink {
    /// Namespace that listens.
    pub ns: Ns,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
}

/// Outcome of [`UdpSink`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSinkReport {
    /// Datagrams received, without duplicates.
    pub received: u64,
    /// Numbers missing below the highest one that came. What was lost after it shows against
    /// [`UdpSourceReport::sent`].
    pub missing: u64,
    /// Datagrams that came after one with a higher number.
    pub reordered: u64,
    /// Datagrams that came more than once.
    pub duplicates: u64,
    /// Datagrams whose payload was wrong.
    pub corrupt: u64,
    /// What ended it, other than [`crate::Command::Stop`].
    pub error: Option<Failure>,
}

/// Sends numbered datagrams: the number as eight little-endian bytes, then the seed's payload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UdpSource {
    /// Namespace that sends.
    pub ns: Ns,
    /// Source address and port.
    pub bind: Option<SocketAddr>,
    /// Where to send.
    pub connect: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
    /// Datagrams to send; `None` sends until [`crate::Command::Finish`].
    pub datagrams: Option<u64>,
    /// Bytes of each datagram, 8 to 65507.
    pub size: u32,
    /// How many the kernel gets at once, to be segmented (`UDP_SEGMENT`); `None` is one, without
    /// that.
    pub batch: Option<u32>,
    /// Pause after each datagram, in microseconds.
    pub pause_us: u64,
}

/// Outcome of [`UdpSource`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSourceReport {
    /// Datagrams that the socket accepted.
    pub sent: u64,
    /// What ended it early.
    pub error: Option<Failure>,
}
