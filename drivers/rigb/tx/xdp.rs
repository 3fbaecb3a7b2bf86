// SPDX-License-Identifier: GPL-2.0

//! Frames of XDP programs. They share the ring with the core's, and its lock, but byte queue limits
//! don't know of them.

use i82576::{
    limits,
    offload::Offload, //
};
use kernel::prelude::*;
use net::{
    dma::TxMappings,
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
    /// Maps `frame`, writes its descriptors and pushes their slots; returns the last one. On an
    /// error nothing is.
    fn push_frame(&mut self, frame: &xdp::Frame) -> Result<u32> {
        let len = frame.len();

        // The device pads, but from this length on.
        if !(limits::MIN_TX_FRAME..=limits::MAX_FRAME - limits::FRAME_CHECK).contains(&len) {
            return Err(EINVAL);
        }
        let parts = TxMappings::of_frame(self.parent, frame, limits::MAX_TX_FRAGMENT);

        self.map(parts, len, &Offload::NONE)
            .inspect_err(|_| self.take_back())
    }
}

#[vtable]
impl TransmitFrames for Transmitter<'_> {
    const FRAGMENTS: bool = true;

    fn transmit_frame(&mut self, frame: xdp::Frame, queue: TxQueue<'_>) -> Result<(), xdp::Frame> {
        let Ok(last) = self.push_frame(&frame) else {
            self.stats.tx_xdp_dropped.add(1);
            return Err(frame);
        };
        if let Some(slot) = self.slots.oldest() {
            slot.last = last;
        }
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
