// SPDX-License-Identifier: GPL-2.0

//! Frames of AF_XDP sockets. They share the ring with the core's, and its lock.

use i82576::{
    limits,
    offload::{
        Offload,
        Piece, //
    },
};
use kernel::prelude::*;
use net::{
    tx::TxQueue,
    xdp::{
        Pool,
        XskFrame, //
    }, //
};

use super::{
    Frame,
    Transmitter,
    NEEDED,
    WAKE, //
};

/// Frames in one poll, at most.
const BATCH: u32 = 64;

impl Transmitter<'_> {
    /// Sends what AF_XDP sockets have queued. Returns whether there may be more.
    // noinline: the usual way keeps the registers.
    #[inline(never)]
    pub(crate) fn transmit_xsk(&mut self, pool: &Pool, queue: TxQueue<'_>) -> bool {
        // Leaves so much room that the core's queue is woken, if it was stopped.
        let room = self.slots.available().saturating_sub(WAKE).min(BATCH);
        if room == 0 {
            return false;
        }
        let count = pool.transmit(room, |frame| {
            let sent = self.push_xsk(frame).is_ok();

            if !sent {
                self.stats.tx_xsk_dropped.add(1);
            }
            sent
        });

        if count != 0 {
            queue.used();
            self.slots.publish();
            let stopped = queue.maybe_stop(|| self.slots.available(), NEEDED, WAKE);
            if stopped {
                self.stats.tx_stop.add(1);
            }
            self.ring_doorbell();
        }
        count == room
    }

    /// Writes the descriptor of `frame` and pushes its slot. On an error nothing is.
    fn push_xsk(&mut self, frame: XskFrame) -> Result {
        let XskFrame {
            address,
            len,
            entries,
        } = frame;

        // The device pads, but from this length on.
        if !(limits::MIN_TX_FRAME..=limits::MAX_TX_FRAGMENT).contains(&len) {
            return Err(EINVAL);
        }
        let paylen = Offload::NONE.paylen(len).ok_or(EINVAL)?;
        // CAST: Checked above.
        let piece = Piece {
            address,
            len: len as u16,
        };

        self.push(None, Offload::NONE.data(piece, paylen, true).encode())?;
        // Its only slot is both.
        if let Some(slot) = self.slots.newest() {
            slot.frame = Some(Frame::Xsk {
                bytes: len,
                entries,
            });
        }
        self.stats.tx_xsk.add(1);
        Ok(())
    }
}
