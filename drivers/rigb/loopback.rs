// SPDX-License-Identifier: GPL-2.0

//! Sends a frame in MAC loopback, while nothing else uses the device's queues.

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

/// How often to poll the device for a frame, and the delay in between.
const TRIES: u32 = 100;
const PAUSE: Delta = Delta::from_millis(1);

/// Descriptor memory is good enough for frames, too.
const BUFFER_KIB: u32 = 2;
const BUFFER: u32 = BUFFER_KIB * limits::PAYLOAD_BUFFER_UNIT / limits::DESCRIPTOR_SIZE;

/// Waits until `done` returns true, for at least `tries` milliseconds.
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

/// The frames that came back.
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

/// Sends `frame`, to [`DESTINATION`], as `sent` describes it, whose last descriptor reports its
/// completion, and waits for `frames` frames of up to 2 KiB.
///
/// # Errors
///
/// `ETIMEDOUT` if fewer came, `ENOMEM`, `EIO` if the device did not stop afterwards.
pub(crate) fn send(
    parent: &Device<Bound>,
    hw: &Hw<'_>,
    mut frame: Descriptors,
    sent: &[tx::Raw],
    frames: u16,
) -> Result<Received> {
    let len = ring::Ring::new(limits::RING_MIN).ok_or(EINVAL)?;
    let mut tx_ring = Descriptors::new(parent, len.len().into())?;
    let mut received = Received {
        ring: Descriptors::new(parent, len.len().into())?,
        buffers: Descriptors::new(parent, 2 * u32::from(frames) * BUFFER)?,
    };

    for (index, descriptor) in (0..).zip(sent) {
        tx_ring.write(index, *descriptor);
    }
    for index in 0..u32::from(frames) {
        let offset = u64::from(index * BUFFER * limits::DESCRIPTOR_SIZE);
        let address = received.buffers.dma_address() + offset;

        received.ring.write(index, rx::rx_read(address, 0));
    }

    // CAST: Some descriptors, fewer than the ring has.
    let outcome = run(hw, len, &tx_ring, sent.len() as u32, &received.ring, frames);
    if stop(hw).is_err() {
        frame.leak();
        tx_ring.leak();
        received.ring.leak();
        received.buffers.leak();
        return Err(EIO);
    }
    outcome.map(|()| received)
}

/// Starts queue 0 of each kind and waits until it has sent `sent` descriptors and received `frames`
/// frames.
fn run(
    hw: &Hw<'_>,
    len: ring::Ring,
    tx_ring: &Descriptors,
    sent: u32,
    rx_ring: &Descriptors,
    frames: u16,
) -> Result {
    let last = sent.checked_sub(1).ok_or(EINVAL)?;

    // Only queue 0 runs; starting the others programs this again.
    hw.write(regs::MRQC, 0);
    hw.start();
    // The link may be busy.
    hw.receive_only(&DESTINATION);
    hw.begin_loopback();
    hw.enable_rx(
        0,
        rx_ring.dma_address(),
        len.bytes(),
        srrctl::encode(BUFFER_KIB, 0, srrctl::DescType::OneBuffer, true),
    )?;
    hw.enable_tx(0, tx_ring.dma_address(), len.bytes())?;
    hw.write(regs::rdt(0), frames.into());
    hw.write(regs::tdt(0), sent);
    wait(TRIES, || {
        tx::is_done(tx_ring.read::<1>(last))
            && (0..frames).all(|index| rx::is_done(rx_ring.read::<1>(index.into())))
    })
}

/// Stops queue 0 of each kind, by a reset if it must.
///
/// # Errors
///
/// The device may still do DMA.
fn stop(hw: &Hw<'_>) -> Result {
    hw.stop_receiving();
    let stopped = hw.disable_tx(0).and(hw.disable_rx(0));

    hw.stop_sending();
    hw.end_loopback();
    stopped.or_else(|_| hw.stop_dma())
}
