// SPDX-License-Identifier: GPL-2.0

//! Self-test: registers, an interrupt, and a frame in MAC loopback.

use i82576::{
    limits,
    regs::{
        self,
        Reg, //
    },
    tx,
    udp_probe::DESTINATION, //
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    prelude::*, //
};
use net::{
    descriptors::Descriptors,
    device::Locked, //
};

use crate::{
    hw::Hw,
    loopback,
    netdev::{
        Adapter,
        Control, //
    }, //
};

/// The tests; all but the last interrupt traffic.
pub(super) const NAMES: [&CStr; 4] = [
    c"Register test (offline)",
    c"Interrupt test (offline)",
    c"Loopback test (offline)",
    c"Link test (online)",
];

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

/// See [`net::ethtool::SelfTest::self_test`].
pub(super) fn run<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    control: &mut Control,
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
        Adapter::offline(dev, control, |adapter, control| {
            outcomes[0] = registers(hw);
            outcomes[1] = interrupt(adapter, control);
            outcomes[2] = loopback(adapter.parent, hw);
        })?;
    }

    for (result, outcome) in results.iter_mut().zip(&outcomes) {
        *result = outcome.is_err().into();
    }
    outcomes.into_iter().collect()
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

/// How often to look for an interrupt, at most: the CPU that takes it may be busy, or a vCPU.
const INTERRUPT_TRIES: u32 = 5000;

/// A requested interrupt arrives.
fn interrupt<'bound>(adapter: &Adapter<'bound>, control: &Control) -> Result {
    let hw = &adapter.hw;
    // The link's vector is the one after the queue pairs'.
    let vector = u32::from(control.pairs);
    let before = adapter.link.interrupts();

    hw.enable_interrupts(vector);
    hw.trigger(vector);
    let came = loopback::wait(INTERRUPT_TRIES, || adapter.link.interrupts() != before);
    hw.disable_interrupts();
    came
}

/// The frame that is sent: to [`DESTINATION`], with an experimental EtherType, then numbers.
const FRAME: u16 = 512;
const HEADER: [u64; 2] = [0x5452_0000_0000_0000 | destination(), 0x0000_b588_5600_5443];

/// [`DESTINATION`] as the start of a little-endian quadword.
const fn destination() -> u64 {
    let [a, b, c, d, e, f] = DESTINATION;

    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// Quadword `index` of the frame.
fn frame(index: u32) -> u64 {
    match HEADER.get(index as usize) {
        Some(word) => *word,
        None => u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

/// A frame that is sent in MAC loopback comes back unchanged.
fn loopback(parent: &Device<Bound>, hw: &Hw<'_>) -> Result {
    // Descriptor memory is good enough for frames, too: two quadwords each.
    let sent = Descriptors::<2>::new(parent, u32::from(FRAME) / limits::DESCRIPTOR_SIZE)?;

    for index in 0..u32::from(FRAME) / limits::DESCRIPTOR_SIZE {
        sent.write(index, [frame(2 * index), frame(2 * index + 1)]);
    }
    let data = tx::Data {
        address: sent.dma_address(),
        len: FRAME,
        paylen: FRAME.into(),
        end_of_packet: true,
        report_status: true,
        ..tx::Data::default()
    };
    let received = loopback::send(parent, hw, sent, &[data.encode()], 1)?;
    let same = (0..u32::from(FRAME) / 8).all(|word| received.word(0, word) == frame(word));

    if received.len(0) == u32::from(FRAME) && same {
        Ok(())
    } else {
        Err(EIO)
    }
}
