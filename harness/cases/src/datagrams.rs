// SPDX-License-Identifier: MIT OR Apache-2.0

//! UDP datagrams whose payload is verified.

use std::net::SocketAddr;

use protocol::{UdpSink, UdpSource};
use vm::JobHandle;

use crate::{Family, Result, Station, Testbed};

/// Numbered datagrams of seeded payload from one station to the other.
#[derive(Debug, Clone)]
pub struct Datagrams {
    /// Who sends.
    pub from: Station,
    /// Who receives.
    pub to: Station,
    /// Over what.
    pub family: Family,
    /// Where the receiver listens.
    pub port: u16,
    /// Seed of the payload.
    pub seed: u64,
    /// The sender's own address and port; `None` lets its kernel choose.
    pub bind: Option<SocketAddr>,
    /// Bytes of each.
    pub size: u32,
    /// How many the kernel gets at once, to be segmented; `None` is one, without that.
    pub batch: Option<u32>,
    /// Pause after each, in microseconds.
    pub pause_us: u64,
}

impl Testbed {
    /// New datagrams of `size` bytes, with a port and a seed of their own, without a pause.
    pub fn datagrams(&self, from: Station, to: Station, family: Family, size: u32) -> Datagrams {
        let port = self.port();
        Datagrams {
            from,
            to,
            family,
            port,
            seed: port.into(),
            bind: None,
            size,
            batch: None,
            pause_us: 0,
        }
    }
}

impl Datagrams {
    /// Where the receiver listens.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        self.to.socket(self.family, self.port)
    }

    /// Receives them.
    pub fn sink<'g>(&self, bed: &'g Testbed) -> Result<JobHandle<'g, UdpSink>> {
        Ok(bed.guest.start(UdpSink {
            ns: self.to.ns,
            listen: self.listen(),
            seed: self.seed,
        })?)
    }

    /// Sends `count` of them; with `None` it sends until [`protocol::Command::Finish`].
    pub fn source<'g>(
        &self,
        bed: &'g Testbed,
        count: Option<u64>,
    ) -> Result<JobHandle<'g, UdpSource>> {
        Ok(bed.guest.start(UdpSource {
            ns: self.from.ns,
            bind: self.bind,
            connect: self.listen(),
            seed: self.seed,
            datagrams: count,
            size: self.size,
            batch: self.batch,
            pause_us: self.pause_us,
        })?)
    }
}
