// SPDX-License-Identifier: GPL-2.0

//! Whether the device segments UDP.

use i82576::udp_probe::{
    self,
    START, //
};
use kernel::prelude::*;
use net::{
    descriptors::Descriptors,
    device::Locked, //
};

use super::{
    Adapter,
    Control, //
};
use crate::loopback;

/// Probes the device the first time, which interrupts traffic.
///
/// # Errors
///
/// As for [`Adapter::offline`]; the next call probes again.
pub(super) fn segments_udp<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    control: &mut Control,
) -> Result<bool> {
    if let Some(known) = control.segments_udp {
        return Ok(known);
    }

    let parent = dev.device().driver().parent;
    let segments = match Adapter::offline(dev, control, |adapter, _| look(adapter))? {
        Ok(true) => true,
        Ok(false) => {
            dev_info!(
                parent,
                "no UDP segmentation: this device makes IP fragments\n"
            );
            false
        }
        // It is not probed again: the core would cause that with each change of another feature.
        Err(error) => {
            dev_warn!(
                parent,
                "no UDP segmentation: it can not be tried: {error:?}\n"
            );
            false
        }
    };

    control.segments_udp = Some(segments);
    Ok(segments)
}

/// Sends a datagram to be segmented in MAC loopback, and checks what comes back.
///
/// # Errors
///
/// `ENOMEM`, or nothing came back.
fn look(adapter: &Adapter<'_>) -> Result<bool> {
    let frame = Descriptors::<2>::new(adapter.parent, udp_probe::SIZE)?;

    for index in 0..udp_probe::SIZE {
        frame.write(index, udp_probe::words(index));
    }
    let sent = udp_probe::descriptors(frame.dma_address()).ok_or(EINVAL)?;
    let frames = udp_probe::SEGMENTS;
    let received = loopback::send(adapter.parent, &adapter.hw, frame, &sent, frames)?;

    Ok((0..u32::from(frames)).all(|index| {
        let mut start = [0; START];

        for (word, bytes) in (0..).zip(start.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&received.word(index, word).to_le_bytes());
        }
        udp_probe::is_segment(&start, received.len(index))
    }))
}
