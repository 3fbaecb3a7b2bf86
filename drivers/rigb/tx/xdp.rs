// SPDX-License-Identifier: GPL-2.0

//! Frames of XDP programs. They share the ring with the core's, and its lock, but byte queue limits
//! don't know of them.

use i82576::{
    limits,
    offload::{
        Offload,
        Pieces, //
    },
};
use kernel::prelude::*;
use net::{
    dma::TxMapping,
    tx::TxQueue,
    xdp::{
        self,
        TransmitFrames, //
    },
};

use super::{
    Frame,
    Transmitter,
    NEEDED,
    WAKE, //
};

impl Transmitter<'_> {
    /// Maps `frame`, writes its descriptor and pushes its slot. On an error nothing is.
    fn push_frame(&mut self, frame: &xdp::Frame) -> Result {
        let len = frame.len();
        let paylen = Offload::NONE.paylen(len).ok_or(EINVAL)?;

        // The device pads, but from this length on.
        if !(limits::MIN_TX_FRAME..=limits::MAX_TX_FRAGMENT).contains(&len) {
            return Err(EINVAL);
        }
        let mapping = TxMapping::frame(self.parent, frame)?;
        let piece = Pieces::new(mapping.address(), len).next().ok_or(EINVAL)?;

        self.push(
            Some(mapping),
            Offload::NONE.data(piece, paylen, true).encode(),
        )?;
        Ok(())
    }
}

#[vtable]
impl TransmitFrames for Transmitter<'_> {
    fn transmit_frame(&mut self, frame: xdp::Frame, queue: TxQueue<'_>) -> Result<(), xdp::Frame> {
        if self.push_frame(&frame).is_err() {
            self.stats.tx_xdp_dropped.add(1);
            return Err(frame);
        }
        // Its only slot is both.
        if let Some(slot) = self.slots.newest() {
            slot.frame = Some(Frame::Xdp(frame));
        }
        self.slots.publish();
        self.stats.tx_xdp.add(1);
        // The core's next frame must find room.
        if queue.maybe_stop(|| self.slots.available(), NEEDED, WAKE) {
            self.stats.tx_stop.add(1);
            self.ring_doorbell();
        }
        Ok(())
    }

    fn flush_frames(&mut self) {
        self.ring_doorbell();
    }
}
