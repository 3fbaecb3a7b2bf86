// SPDX-License-Identifier: MIT OR Apache-2.0

//! Transfers to and from accelerator memory, and the traces they leave elsewhere.
//!
//! To prove that payload goes nowhere but to the accelerator, no guest CPU may know it: the host
//! generates it and writes it into accelerator memory, and a NIC sends it from there.

use std::hash::{BuildHasher, Hasher, RandomState};

use protocol::{
    Command, CopySink, DevmemRelay, DevmemSource, Event, Fill, Memory, Payload,
    memory::PhysicalRange,
};
use vm::{
    JobHandle,
    traces::{self, Search, Trace},
};

use crate::{Result, Stream, Testbed};

/// The memory of the testbed's only accelerator.
pub const ACCELERATOR: Memory = Memory::Accelerator { device: 0 };

impl Stream {
    /// The same stream, with its dma-bufs in accelerator memory.
    #[must_use]
    pub fn in_accelerator(self) -> Self {
        Self {
            memory: ACCELERATOR,
            ..self
        }
    }

    /// The same stream with a fresh payload.
    #[must_use]
    pub fn unpredictable(self) -> Self {
        let seed = RandomState::new().build_hasher().finish();
        Self { seed, ..self }
    }

    /// Sends `bytes` from a dma-buf that the host fills without involving the guest.
    pub fn source_filled_by_host<'g>(
        &self,
        bed: &'g Testbed,
        bytes: u64,
    ) -> Result<JobHandle<'g, DevmemSource>> {
        let (source, _) = self.source_ready(bed, bytes)?;
        source.tell(Command::Go)?;
        Ok(source)
    }

    /// As [`Stream::source_filled_by_host`], but sends nothing before [`Command::Go`]. Also returns
    /// where the dma-buf is.
    pub fn source_ready<'g>(
        &self,
        bed: &'g Testbed,
        bytes: u64,
    ) -> Result<(JobHandle<'g, DevmemSource>, Vec<PhysicalRange>)> {
        let mut source = bed.guest.start(DevmemSource {
            fill: Fill::Host,
            seed: 0,
            ..self.devmem_source_spec(Some(bytes), bytes.next_multiple_of(4096), 256 << 10)
        })?;
        let ranges = source.wait_event(place)?;
        let dmabuf = bed.guest.dmabuf(ranges.clone())?;
        dmabuf.write(0, &self.payload(bytes))?;
        Ok((source, ranges))
    }

    /// Receives it in ordinary memory and copies it into a dma-buf of `dmabuf_bytes`. If that is
    /// refused, the error has the errno.
    pub fn copy_sink<'g>(
        &self,
        bed: &'g Testbed,
        dmabuf_bytes: u64,
    ) -> std::result::Result<JobHandle<'g, CopySink>, vm::Error> {
        bed.guest.start(CopySink {
            ns: self.to.ns,
            memory: self.memory,
            dmabuf_bytes,
            listen: self.to.socket(self.family, self.port),
        })
    }

    /// Receives it in a dma-buf bound to `queue` and forwards it as another stream, whose sender is
    /// this one's receiver.
    pub fn relay<'g>(
        &self,
        bed: &'g Testbed,
        queue: u32,
        dmabuf_bytes: u64,
        onward: &Stream,
    ) -> Result<JobHandle<'g, DevmemRelay>> {
        Ok(bed.guest.start(DevmemRelay {
            ns: self.to.ns,
            interface: self.to.name(),
            queues: vec![queue],
            memory: self.memory,
            dmabuf_bytes,
            listen: self.to.socket(self.family, self.port),
            bind: onward.bind,
            connect: onward.to.socket(onward.family, onward.port),
        })?)
    }

    /// The first `bytes` of its payload.
    #[must_use]
    pub fn payload(&self, bytes: u64) -> Vec<u8> {
        let mut payload = vec![0; bytes as usize];
        Payload::new(self.seed).fill(0, &mut payload);
        payload
    }

    /// The traces that the first `bytes` of its payload left in the guest's RAM.
    pub fn traces_in_ram(&self, bed: &Testbed, bytes: u64) -> Result<Vec<Trace>> {
        let search = Search::new(self.payload(bytes));
        Ok(traces::find(&search, bed.guest.ram())?)
    }
}

/// The location of its dma-buf that a job reports, for [`JobHandle::wait_event`].
pub fn place(event: Event) -> Option<Vec<PhysicalRange>> {
    match event {
        Event::DmaBuf { ranges } => Some(ranges),
        _ => None,
    }
}
