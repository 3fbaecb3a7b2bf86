// SPDX-License-Identifier: MIT OR Apache-2.0

//! Transfers through io_uring zero-copy receive.

use protocol::{Release, ZcrxMemory, ZcrxSink, tcp::SourceReport, zcrx::ZcrxSinkReport};
use vm::JobHandle;

use crate::{CaseError, Result, Stream, Testbed};

/// The result of [`Stream::receive_zcrx`].
#[derive(Debug, Clone)]
pub struct ReceivedByRing {
    /// The receiver's report.
    pub sink: ZcrxSinkReport,
    /// The sender's report.
    pub source: SourceReport,
    /// Bytes that the host found correct in the area's pages.
    pub verified: u64,
}

impl Stream {
    /// Receives it in an area of `queue`, with buffers of [`Stream::rx_page_size`]. The guest
    /// verifies as with [`Stream::devmem_sink_spec`].
    #[must_use]
    pub fn zcrx_sink_spec(
        &self,
        queue: u32,
        memory: ZcrxMemory,
        area_bytes: u64,
        release: Release,
    ) -> ZcrxSink {
        ZcrxSink {
            ns: self.to.ns,
            interface: self.to.name(),
            queue,
            memory,
            area_bytes,
            rx_buf_len: self.rx_page_size,
            refill_entries: None,
            completions: None,
            listen: self.to.socket(self.family, self.port),
            seed: self.seed,
            verify: true,
            report: false,
            release,
        }
    }

    /// As [`Stream::zcrx_sink_spec`], started.
    pub fn zcrx_sink<'g>(
        &self,
        bed: &'g Testbed,
        queue: u32,
        memory: ZcrxMemory,
        area_bytes: u64,
        release: Release,
    ) -> Result<JobHandle<'g, ZcrxSink>> {
        Ok(bed
            .guest
            .start(self.zcrx_sink_spec(queue, memory, area_bytes, release))?)
    }

    /// Receives it in an area of `queue`, for [`Stream::verify_and_release`] on the host.
    pub fn zcrx_sink_for_host<'g>(
        &self,
        bed: &'g Testbed,
        queue: u32,
        memory: ZcrxMemory,
        area_bytes: u64,
    ) -> Result<JobHandle<'g, ZcrxSink>> {
        Ok(bed.guest.start(ZcrxSink {
            // As in `Stream::devmem_sink_for_host`.
            seed: 0,
            verify: false,
            report: true,
            ..self.zcrx_sink_spec(queue, memory, area_bytes, Release::OnRequest)
        })?)
    }

    /// Receives `bytes` in an area of `queue`. The host reads the area's pages in guest RAM and
    /// compares them with the seed's payload while the receiver holds them.
    pub fn receive_zcrx(
        &self,
        bed: &Testbed,
        queue: u32,
        memory: ZcrxMemory,
        bytes: u64,
        area_bytes: u64,
    ) -> Result<ReceivedByRing> {
        let mut sink = self.zcrx_sink_for_host(bed, queue, memory, area_bytes)?;
        let source = self.source(bed, Some(bytes), &[256 << 10], 0)?;
        let verified = self.verify_and_release(bed, &mut sink, |_| ())?;
        Ok(ReceivedByRing {
            sink: sink.join()?,
            source: source.join()?,
            verified,
        })
    }
}

impl Testbed {
    /// Reserves `bytes` of the guest's memory as huge pages of 2 MiB.
    pub fn reserve_huge_pages(&self, bytes: u64) -> Result {
        let file = "/proc/sys/vm/nr_hugepages";
        let pages = bytes.div_ceil(2 << 20).to_string();
        self.write_file(file, &pages)?;
        let got = self.read_file(file)?;
        if got.trim() != pages {
            return Err(CaseError::new(format!(
                "the guest found {} huge pages, not {pages}",
                got.trim()
            )));
        }
        Ok(())
    }

    /// Asserts that the NIC under test works as if there had been no ring: no queue belongs to one,
    /// ordinary TCP arrives, and no net_iov of an area is outstanding.
    ///
    /// # Panics
    ///
    /// If a net_iov of an area stays outstanding.
    pub fn assert_no_ring_left(&self) -> Result {
        self.wait_rings_gone(self.local)?;
        self.transfer_over_both(self.peer, self.local, 4 << 20)?;
        assert_eq!(
            self.net_iovs_left(self.local)?,
            0,
            "an area is still in use"
        );
        Ok(())
    }
}

/// Asserts that `bytes` arrived, were right, and were not copied.
///
/// # Panics
///
/// If any of that is not the case.
pub fn assert_whole(report: &ZcrxSinkReport, bytes: u64) {
    assert_eq!(
        (
            report.bytes,
            report.copied_bytes,
            report.mismatch,
            &report.error
        ),
        (bytes, 0, None, &None),
        "{report:?}"
    );
    assert!(report.end_of_stream, "{report:?}");
}
