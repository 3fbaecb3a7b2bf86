// SPDX-License-Identifier: GPL-2.0

//! What a device says of a frame that it has received.

use super::{
    RxSkb,
    TxSkb, //
};

/// A hash that the device has computed over a received frame.
#[derive(Copy, Clone)]
pub enum Hash {
    /// There is none.
    None,
    /// Over addresses.
    L3(u32),
    /// Over addresses and ports.
    L4(u32),
}

/// What the device says of a received frame's checksums (`CHECKSUM_*`).
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// Nothing.
    None,
    /// It has verified them (`CHECKSUM_UNNECESSARY`).
    Unnecessary,
    /// This is the ones' complement sum of all bytes behind the Ethernet header
    /// (`CHECKSUM_COMPLETE`).
    Complete(u32),
    /// It is still to be filled in, as the frame comes from another guest or software
    /// (`CHECKSUM_PARTIAL`): over all from byte `start` of the frame on, `offset` bytes behind that.
    Partial {
        /// The transport header, in bytes from the start of the frame.
        start: u16,
        /// The checksum field, in bytes from the transport header.
        offset: u16,
    },
}

/// Segments of one flow that the device has merged into a frame (HW-GRO), or that were not cut.
#[derive(Copy, Clone)]
pub struct Merged {
    /// Payload bytes of each segment but the last.
    pub mss: u16,
    /// The number of segments.
    pub segments: u16,
    /// IPv6, not IPv4.
    pub ipv6: bool,
    /// Datagrams of UDP, not segments of TCP.
    pub udp: bool,
}

/// What the device says of a frame that it has received.
#[derive(Copy, Clone)]
pub struct RxMetadata {
    pub(super) queue: u16,
    pub(super) checksum: Checksum,
    pub(super) hash: Hash,
    pub(super) merged: Option<Merged>,
}

impl RxMetadata {
    /// A frame of RX queue `queue`, of which the device says nothing.
    #[inline]
    pub fn new(queue: u16) -> Self {
        Self {
            queue,
            checksum: Checksum::None,
            hash: Hash::None,
            merged: None,
        }
    }

    /// A frame of RX queue `queue` of software, which knows what its sender does: a checksum that is
    /// still to be filled in, and segments that are not cut. Other frames have the sum of `copy`
    /// ([`RxSkb::copy_sent`]): the sender's pages may change meanwhile.
    pub fn of_sent(queue: u16, sent: &TxSkb, copy: &RxSkb) -> Self {
        let checksum = if sent.needs_checksum() {
            Checksum::Partial {
                // CAST: Headers are short.
                start: sent.transport_offset() as u16,
                offset: sent.checksum_offset(),
            }
        } else {
            Checksum::Complete(copy.sum())
        };

        Self {
            checksum,
            merged: sent.merged(),
            ..Self::new(queue)
        }
    }

    /// Says what is known of its checksums.
    #[inline]
    pub fn with_checksum(self, checksum: Checksum) -> Self {
        Self { checksum, ..self }
    }

    /// Adds its hash.
    #[inline]
    pub fn with_hash(self, hash: Hash) -> Self {
        Self { hash, ..self }
    }

    /// Says what segments it was merged from.
    #[inline]
    pub fn with_merged(self, merged: Merged) -> Self {
        Self {
            merged: Some(merged),
            ..self
        }
    }
}
