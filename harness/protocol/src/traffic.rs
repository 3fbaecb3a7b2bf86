// SPDX-License-Identifier: MIT OR Apache-2.0

//! Single packets.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Failure, Ns, net::interface_requests};

/// Sends ICMP or ICMPv6 echo requests one after the other and checks the replies' payload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ping {
    /// Namespace that sends.
    pub ns: Ns,
    /// Destination; must not be a link-local address.
    pub to: IpAddr,
    /// How many.
    pub count: u32,
    /// Bytes after the ICMP header.
    pub size: u32,
    /// How long to wait for each reply, in milliseconds.
    pub timeout_ms: u64,
}

/// Answer to [`Ping`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingReport {
    /// Requests sent.
    pub sent: u32,
    /// Replies with the right payload.
    pub received: u32,
    /// Replies whose payload was not the request's.
    pub corrupt: u32,
    /// Requests that were not answered in time or could not be sent.
    pub lost: u32,
    /// What the first request that could not be sent met.
    pub error: Option<Failure>,
}

interface_requests! {
    /// Sends a frame as it is, past the whole stack: also one that is wrong.
    ///
    /// When this returns, the driver has it.
    SendFrame {
        /// From the Ethernet header on, without padding and frame check sequence.
        frame: Vec<u8>,
    },
}

/// Sends frames as they are, and waits for frames that come to an interface.
///
/// The answer is what came, at most `count` frames in their order. Fails with ETIMEDOUT.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExchangeFrames {
    /// Namespace of the sender.
    pub from: Ns,
    /// Interface that sends.
    pub through: String,
    /// From the Ethernet header on, without padding and frame check sequence.
    pub frames: Vec<Vec<u8>>,
    /// Namespace of the receiver.
    pub to: Ns,
    /// Interface that receives.
    pub at: String,
    /// Ethernet type of what is waited for.
    pub ethertype: u16,
    /// The hash that the kernel has of what is waited for (`skb->hash`); `None` is any.
    pub hash: Option<u32>,
    /// How many frames.
    pub count: usize,
    /// How long to wait for them, in milliseconds.
    pub timeout_ms: u64,
}
