// SPDX-License-Identifier: GPL-2.0

//! The device tests itself: registers, an interrupt, and a frame in a loop inside the device.

use core::ops::ControlFlow;

use i82576::{
    limits,
    regs::{
        self,
        srrctl,
        Reg, //
    },
    ring,
    rx,
    tx, //
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
use net::{
    descriptors::Descriptors,
    device::Locked, //
};

use crate::{
    hw::Hw,
    netdev::{
        Adapter,
        Control,
        Rings, //
    }, //
};

/// The tests; all but the last interrupt traffic.
pub(super) const NAMES: [&CStr; 4] = [
    c"Register test (offline)",
    c"Interrupt test (offline)",
    c"Loopback test (offline)",
    c"Link test (online)",
];

/// How often a test looks whether something has happened, and how long it waits between.
const TRIES: u32 = 100;
const PAUSE: Delta = Delta::from_millis(1);

/// Registers that keep what is written to the bits of a mask, while no queue runs.
const KEPT: [(Reg, u32); 12] = [
    (regs::rdbal(0), 0xffff_ff80),
    (regs::rdbah(0), 0xffff_ffff),
    (regs::rdlen(0), 0x000f_ff80),
    (regs::tdbal(0), 0xffff_ff80),
    (regs::tdbah(0), 0xffff_ffff),
    (regs::tdlen(0), 0x000f_ff80),
    (regs::rdbal(15), 0xffff_ff80),
    (regs::tdbah(15), 0xffff_ffff),
    (regs::rssrk(0), 0xffff_ffff),
    (regs::rssrk(9), 0xffff_ffff),
    (regs::reta(0), 0x0f0f_0f0f),
    (regs::FCTTV, 0x0000_ffff),
];

const PATTERNS: [u32; 4] = [0x5a5a_5a5a, 0xa5a5_a5a5, 0, 0xffff_ffff];

/// See [`net::ethtool::Diagnostics::self_test`].
pub(super) fn run<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    control: &mut Control<'bound>,
    offline: bool,
    results: &mut [u64],
) -> Result {
    let adapter = dev.device().driver();
    let hw = &*adapter.hw;
    let link = if hw.link_is_up() {
        Ok(())
    } else {
        Err(ENOLINK)
    };
    let mut outcomes = [Ok(()), Ok(()), Ok(()), link];

    if offline {
        // What it takes to go on afterwards comes first.
        let rings = if dev.is_running() {
            let program = control.program.as_ref();

            Some(Rings::new(
                dev,
                0..control.in_use,
                &control.settings,
                program,
            )?)
        } else {
            None
        };

        if rings.is_some() {
            Adapter::halt(dev, control);
        }
        outcomes[0] = registers(hw);
        outcomes[1] = interrupt(adapter, control);
        outcomes[2] = loopback(adapter.parent, hw);
        if let Some(rings) = rings {
            Adapter::start(dev, control, rings)?;
        }
    }

    for (result, outcome) in results.iter_mut().zip(&outcomes) {
        *result = outcome.is_err().into();
    }
    outcomes.into_iter().collect()
}

/// Waits until `done` says so.
fn wait(mut done: impl FnMut() -> bool) -> Result {
    let looked = (0..TRIES).try_for_each(|_| {
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

/// Registers keep what is written to them.
fn registers(hw: &Hw<'_>) -> Result {
    let mut outcome = Ok(());

    for (register, mask) in KEPT {
        let saved = hw.read(register);

        for pattern in PATTERNS {
            hw.write(register, pattern & mask);
            if hw.read(register) & mask != pattern & mask {
                outcome = Err(EIO);
            }
        }
        hw.write(register, saved);
    }
    outcome
}

/// An interrupt that is asked for comes.
fn interrupt<'bound>(adapter: &Adapter<'bound>, control: &Control<'bound>) -> Result {
    let hw = &adapter.hw;
    // The link's vector is the one after the queue pairs'. CAST: There are at most 16 pairs.
    let vector = control.pairs.len() as u32;
    let before = adapter.link.interrupts();

    hw.enable_interrupts(vector);
    hw.trigger(vector);
    let came = wait(|| adapter.link.interrupts() != before);
    hw.disable_interrupts();
    came
}

/// Bytes of the frame that is sent: broadcast, of an EtherType for experiments, and numbers.
const FRAME: u16 = 512;
const HEADER: [u64; 2] = [0x5452_ffff_ffff_ffff, 0x0000_b588_5600_5443];

/// Quadword `index` of the frame.
fn frame(index: u32) -> u64 {
    match HEADER.get(index as usize) {
        Some(word) => *word,
        None => u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

/// Queue 0 of each kind while it is tested. Dropping it makes the device stop.
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

/// A frame that is sent in a loop inside the device comes back as it was.
fn loopback(parent: &Device<Bound>, hw: &Hw<'_>) -> Result {
    let len = ring::Ring::new(limits::RING_MIN).ok_or(EINVAL)?;
    let rx_ring = Descriptors::new(parent, len.len().into())?;
    let tx_ring = Descriptors::new(parent, len.len().into())?;
    // Memory that descriptors are made of does for frames, too: two quadwords each.
    let sent = Descriptors::new(parent, u32::from(FRAME) / limits::DESCRIPTOR_SIZE)?;
    let received = Descriptors::new(
        parent,
        2 * limits::PAYLOAD_BUFFER_UNIT / limits::DESCRIPTOR_SIZE,
    )?;

    for index in 0..u32::from(FRAME) / limits::DESCRIPTOR_SIZE {
        sent.write(index, [frame(2 * index), frame(2 * index + 1)]);
    }
    rx_ring.write(0, rx::rx_read(received.dma_address(), 0));
    let data = tx::Data {
        address: sent.dma_address(),
        len: FRAME,
        paylen: FRAME.into(),
        end_of_packet: true,
        report_status: true,
        ..tx::Data::default()
    };
    tx_ring.write(0, data.encode());

    let queues = Queues(hw);
    hw.start();
    hw.begin_loopback();
    hw.enable_rx(
        0,
        rx_ring.dma_address(),
        len.bytes(),
        srrctl::encode(2, 0, srrctl::DescType::OneBuffer, true),
    )?;
    hw.enable_tx(0, tx_ring.dma_address(), len.bytes())?;
    hw.write(regs::rdt(0), 1);
    hw.write(regs::tdt(0), 1);
    wait(|| tx::is_done(tx_ring.read(0, 1)) && rx::is_done(rx_ring.read(0, 1)))?;
    drop(queues);

    let write_back = rx::WriteBack::from_raw(rx_ring.read(0, 0), rx_ring.read(0, 1));
    let same = (0..u32::from(FRAME) / 8)
        .all(|word| received.read(word / 2, word as usize % 2) == frame(word));
    if write_back.packet_len() == FRAME && same {
        Ok(())
    } else {
        Err(EIO)
    }
}
