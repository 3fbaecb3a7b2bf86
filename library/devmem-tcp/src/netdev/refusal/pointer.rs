// SPDX-License-Identifier: MIT OR Apache-2.0

//! What of the request the kernel points at, by the offset of an attribute.

use super::BindRx;
use crate::error::Refusal;

/// The queue that the kernel points at. Its offset lies inside the attribute that holds the queue.
pub(super) fn queue_pointed_at(refusal: &Refusal, asked: &BindRx<'_>) -> Option<u32> {
    let offset = refusal.bad_attribute?;
    let first = asked.ends.first()?.checked_sub(QUEUE_ATTRIBUTE)?;
    if offset < first {
        return None;
    }
    let index = asked.ends.iter().position(|&end| offset < end)?;
    asked.queues.get(index).copied()
}

/// Whether the kernel points at the page size, which is the attribute before the queues.
pub(super) fn points_at_page_size(refusal: &Refusal, asked: &BindRx<'_>) -> bool {
    let first = asked
        .ends
        .first()
        .and_then(|end| end.checked_sub(QUEUE_ATTRIBUTE + PAGE_SIZE_ATTRIBUTE));
    asked.rx_page_size.is_some() && first.is_some() && refusal.bad_attribute == first
}

/// Bytes of the page size's attribute: its header and a u32.
pub(super) const PAGE_SIZE_ATTRIBUTE: usize = 4 + 4;

/// Bytes of a `queues` attribute: its header, and a header and a u32 for each of type and id.
pub(super) const QUEUE_ATTRIBUTE: usize = 4 + 2 * (4 + 4);
