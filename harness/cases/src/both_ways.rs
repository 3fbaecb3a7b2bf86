// SPDX-License-Identifier: MIT OR Apache-2.0

//! The NIC under test sends and receives continuously, and receives into device memory.

use protocol::{DevmemSink, Release, TcpSink, TcpSource};
use vm::JobHandle;

use crate::{Family, Result, Testbed, finish};

/// Two endless flows: from the peer into a dma-buf bound to queue 1, to which TCP must be steered,
/// and from the NIC under test to the peer.
#[derive(Debug)]
pub struct BothWays<'g> {
    incoming: JobHandle<'g, TcpSource>,
    bound: JobHandle<'g, DevmemSink>,
    outgoing: JobHandle<'g, TcpSource>,
    sink: JobHandle<'g, TcpSink>,
}

impl Testbed {
    /// Starts both flows, and waits until each has transferred `bytes`.
    pub fn both_ways(&self, bytes: u64) -> Result<BothWays<'_>> {
        let receive = self.stream(self.peer, self.local, Family::V4);
        let send = self.stream(self.local, self.peer, Family::V6);
        let mut bound = receive.devmem_sink(self, 1, 8 << 20, Release::Immediate)?;
        let incoming = receive.source(self, None, &[64 << 10], 0)?;
        let mut sink = send.sink(self)?;
        let outgoing = send.source(self, None, &[64 << 10], 0)?;
        bound.wait_bytes(bytes)?;
        sink.wait_bytes(bytes)?;
        Ok(BothWays {
            incoming,
            bound,
            outgoing,
            sink,
        })
    }
}

impl BothWays<'_> {
    /// Ends both; asserts that everything sent arrived, and in the right place.
    pub fn finish(self) -> Result {
        let (sent, report) = (self.incoming.finish()?, self.bound.join()?);
        assert_eq!(
            (report.bytes, report.mismatch, report.linear_bytes),
            (sent.bytes, None, 0),
            "{report:?} {sent:?}"
        );
        finish(self.outgoing, self.sink)
    }

    /// Ends both when the NIC is gone; asserts that what arrived in device memory was right.
    pub fn abandon(self) -> Result {
        self.incoming.stop()?;
        self.outgoing.stop()?;
        self.sink.stop()?;
        let report = self.bound.stop()?;
        assert_eq!(report.mismatch, None, "{report:?}");
        Ok(())
    }
}
