// SPDX-License-Identifier: GPL-2.0

//! A frame in a loop inside the device, while nothing else uses its queues.

use core::ops::ControlFlow;

use i82576::{
    limits,
    regs::{
        self,
        srrctl, //
    },
    ring,
    rx,
    tx,
    udp_probe::DESTINATION, //
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use net::descriptors::Descriptors;

use crate::hw::Hw;

/// How often the device is looked at for a frame, and how long to wait between.
const TRIES: u32 = 100;
const PAUSE: Delta = Delta::from_millis(1);

/// Memory that descriptors are made of does for frames, too.
const BUFFER_KIB: u32 = 2;
const BUFFER: u32 = BUFFER_KIB * limits::PAYLOAD_BUFFER_UNIT / limits::DESCRIPTOR_SIZE;

/// Waits until `done` says so, for `tries` milliseconds at the least.
///
/// # Errors
///
/// `ETIMEDOUT`.
pub(crate) fn wait(tries: u32, mut done: impl FnMut() -> bool) -> Result {
    let looked = (0..tries).try_for_each(|_| {
        if done() {
            return ControlFlow::Break(());
        }
        fsleep(PAUSE);
        ControlFlow::Continue(())
    });

    match looked {
        ControlFlow::Break(()) => Ok(()),
        ControlFlow::Continue(()) => Err(ETIMEDOUT),
    }
}

/// What came back.
pub(crate) struct Received {
    ring: Descriptors,
    buffers: Descriptors<1>,
}

impl Received {
    /// Bytes of the frame `index`.
    pub(crate) fn len(&self, index: u32) -> u32 {
        let write_back =
            rx::WriteBack::from_raw(self.ring.read::<0>(index), self.ring.read::<1>(index));

        write_back.packet_len().into()
    }

    /// Eight bytes of the frame `index`, the ones before which there are `8 * word`, as a
    /// little-endian number.
    pub(crate) fn word(&self, index: u32, word: u32) -> u64 {
        self.buffers.read::<0>(2 * index * BUFFER + word)
    }
}

/// Queue 0 of each kind. Dropping it makes the device stop.
struct Queues<'a>(&'a Hw<'a>);

impl Drop for Queues<'_> {
    fn drop(&mut self) {
        self.0.stop_receiving();
        let stopped = self.0.disable_tx(0).and(self.0.disable_rx(0));

        self.0.stop_sending();
        self.0.end_loopback();
        if stopped.is_err() {
            // The memory goes after this: no queue may access it any more.
            self.0.stop_dma();
        }
    }
}

/// Sends what `sent` describes, to [`DESTINATION`], whose last descriptor reports its completion, and waits for
/// `frames` frames of up to 2 KiB.
///
/// # Errors
///
/// `ETIMEDOUT` if fewer came, `ENOMEM`.
pub(crate) fn send(
    parent: &Device<Bound>,
    hw: &Hw<'_>,
    sent: &[tx::Raw],
    frames: u16,
) -> Result<Received> {
    let len = ring::Ring::new(limits::RING_MIN).ok_or(EINVAL)?;
    let tx_ring = Descriptors::new(parent, len.len().into())?;
    let received = Received {
        ring: Descriptors::new(parent, len.len().into())?,
        buffers: Descriptors::new(parent, 2 * u32::from(frames) * BUFFER)?,
    };
    let Some(last) = sent.len().checked_sub(1) else {
        return Err(EINVAL);
    };

    for (index, descriptor) in (0..).zip(sent) {
        tx_ring.write(index, *descriptor);
    }
    for index in 0..u32::from(frames) {
        let offset = u64::from(index * BUFFER * limits::DESCRIPTOR_SIZE);
        let address = received.buffers.dma_address() + offset;

        received.ring.write(index, rx::rx_read(address, 0));
    }

    let queues = Queues(hw);
    // No other queue is there to hash to; whoever starts them programs this anew.
    hw.write(regs::MRQC, 0);
    hw.start();
    // The wire may be busy.
    hw.receive_only(&DESTINATION);
    hw.begin_loopback();
    hw.enable_rx(
        0,
        received.ring.dma_address(),
        len.bytes(),
        srrctl::encode(BUFFER_KIB, 0, srrctl::DescType::OneBuffer, true),
    )?;
    hw.enable_tx(0, tx_ring.dma_address(), len.bytes())?;
    hw.write(regs::rdt(0), frames.into());
    // CAST: Some descriptors, fewer than the ring has.
    hw.write(regs::tdt(0), sent.len() as u32);
    wait(TRIES, || {
        tx::is_done(tx_ring.read::<1>(last as u32))
            && (0..frames).all(|index| rx::is_done(received.ring.read::<1>(index.into())))
    })?;
    drop(queues);
    Ok(received)
}
