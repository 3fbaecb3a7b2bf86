// SPDX-License-Identifier: MIT OR Apache-2.0

//! The memory that payload lies in: where it comes from, its pieces, and when they go back.

use serde::{Deserialize, Serialize};

/// Where the memory of a dma-buf comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Memory {
    /// The guest's RAM, exported by the udmabuf driver.
    #[default]
    Udmabuf,
    /// The guest's RAM, exported by the dma-heap `system`. The CPU's view of it does not tell where
    /// it is, so there is no [`crate::Event::DmaBuf`].
    SystemHeap,
    /// Memory behind the BAR of an accelerator, exported by its driver, which must be loaded.
    Accelerator {
        /// Number of the accelerator, from 0.
        device: u32,
    },
}

/// A piece of a dma-buf and where it is. Written `[offset,address,len]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct PhysicalRange {
    /// Offset in the dma-buf, in bytes.
    pub offset: u64,
    /// Guest-physical address.
    pub address: u64,
    /// Bytes.
    pub len: u64,
}

impl From<(u64, u64, u64)> for PhysicalRange {
    fn from((offset, address, len): (u64, u64, u64)) -> Self {
        Self {
            offset,
            address,
            len,
        }
    }
}

impl From<PhysicalRange> for (u64, u64, u64) {
    fn from(range: PhysicalRange) -> Self {
        (range.offset, range.address, range.len)
    }
}

/// A piece of a dma-buf. Written `[offset,len]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u32)", into = "(u64, u32)")]
pub struct Span {
    /// Offset in the dma-buf, in bytes.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

impl From<(u64, u32)> for Span {
    fn from((offset, len): (u64, u32)) -> Self {
        Self { offset, len }
    }
}

impl From<Span> for (u64, u32) {
    fn from(span: Span) -> Self {
        (span.offset, span.len)
    }
}

/// When [`crate::DevmemSink`] or [`crate::ZcrxSink`] returns fragments, by token or refill ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Release {
    /// As soon as the fragments were reported.
    Immediate,
    /// When the host says so, batch by batch. Until then the dma-buf keeps the payload, so that
    /// the host can read it from outside.
    OnRequest,
    /// Not until the socket closes, or at [`crate::Command::ReleaseAll`].
    Never,
}
