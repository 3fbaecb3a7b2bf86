// SPDX-License-Identifier: GPL-2.0

//! What was sent is freed, in NAPI.

use i82576::tx as descriptor;
use kernel::sync::{
    barrier::{
        self,
        Read, //
    },
    Arc, //
};
use net::{
    napi,
    spsc,
    tx::TxCompletion, //
};

use super::{
    EnabledQueue,
    Frame,
    Slot,
    WAKE, //
};
use crate::{
    netdev::Adapter,
    stats::QueueStats, //
};

/// Frames completed in one poll, at most.
const COMPLETE_BATCH: u32 = 256;

/// The side that empties the ring. The queue comes first: it is disabled before the slots go.
pub(crate) struct Completion<'bound> {
    pub(super) queue: Arc<EnabledQueue<'bound>>,
    pub(super) slots: spsc::Consumer<Slot<'bound>>,
    /// How the core sees it.
    pub(super) core: TxCompletion<Adapter<'bound>>,
    pub(super) stats: Arc<QueueStats>,
}

impl<'bound> Completion<'bound> {
    /// Frees what was sent, and completes what a socket has sent. Returns whether there is no more of
    /// it.
    // noinline: each loop of a poll has the registers to itself.
    #[inline(never)]
    pub(crate) fn complete(&mut self, napi: &napi::Completion<'_, Adapter<'bound>>) -> bool {
        let mut frames = 0;
        let mut packets = 0;
        let mut bytes = 0;
        let mut xdp_packets = 0;
        let mut xdp_bytes = 0;
        let mut entries = 0;

        while frames < COMPLETE_BATCH {
            let Some((_, slot)) = self.slots.peek() else {
                break;
            };
            let last = slot.last;
            if !descriptor::is_done(self.queue.descriptors.read::<1>(last)) {
                break;
            }
            barrier::dma_mb(Read);
            frames += 1;
            self.queue.poll_doorbell(Some(last));

            while let Some(Slot { mapping, frame, .. }) = self.slots.pop() {
                // The device is done with it before the core gets the memory back.
                drop(mapping);
                match frame {
                    None => continue,
                    Some(Frame::Skb {
                        skb,
                        bytes: skb_bytes,
                        packets: skb_packets,
                    }) => {
                        packets += skb_packets;
                        bytes += skb_bytes;
                        napi.consume(skb);
                    }
                    Some(Frame::Xdp(frame)) => {
                        xdp_packets += 1;
                        xdp_bytes += frame.len();
                    }
                    Some(Frame::Xsk {
                        bytes,
                        entries: done,
                    }) => {
                        xdp_packets += 1;
                        xdp_bytes += bytes;
                        entries += done;
                    }
                }
                break;
            }
        }

        if frames == 0 {
            self.queue.poll_doorbell(None);
            return true;
        }
        self.slots.release();
        if entries != 0 {
            if let Some(pool) = napi.pool(self.queue.index.into()) {
                pool.completed(entries);
            }
        }
        self.stats.tx_packets.add(u64::from(packets + xdp_packets));
        self.stats.tx_bytes.add(u64::from(bytes + xdp_bytes));
        let available = || self.slots.available();
        if self.core.completed(napi, packets, bytes, available, WAKE) {
            self.stats.tx_wake.add(1);
        }
        frames < COMPLETE_BATCH
    }
}
