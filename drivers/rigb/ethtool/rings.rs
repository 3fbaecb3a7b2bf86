// SPDX-License-Identifier: GPL-2.0

//! Ring sizes and header split.

use i82576::{
    limits,
    ring, //
};
use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        ExtAck,
        HeaderSplit,
        RingParams,
        RingRequest,
        Rings, //
    },
};

use crate::{
    netdev::{
        Adapter,
        Control,
        Settings, //
    },
    tx,
    xdp, //
};

/// A ring of about `len` descriptors.
fn ring_of(len: u32, extack: &ExtAck<'_>) -> Result<ring::Ring> {
    u16::try_from(len)
        .ok()
        .and_then(ring::Ring::new)
        .ok_or_else(|| {
            extack.set(c"rings have 64 to 4096 descriptors, in multiples of 8");
            EINVAL
        })
}

/// The same of a TX ring.
fn tx_ring_of(len: u32, extack: &ExtAck<'_>) -> Result<ring::Ring> {
    let ring = ring_of(len, extack)?;

    if ring.len() < tx::RING_MIN {
        extack.set(c"a TX ring must have room for two skbs of MAX_SKB_FRAGS fragments");
        return Err(EINVAL);
    }
    Ok(ring)
}

#[vtable]
impl<'bound> RingParams for Adapter<'bound> {
    const HEADER_SPLIT: bool = true;

    fn rings(control: &Control) -> Rings {
        Rings {
            rx: u32::from(control.settings.rx_len.len()),
            tx: u32::from(control.settings.tx_len.len()),
            rx_max: u32::from(limits::RING_MAX),
            tx_max: u32::from(limits::RING_MAX),
            header_split: if control.settings.split {
                HeaderSplit::Enabled
            } else {
                HeaderSplit::Disabled
            },
            // The device splits every packet that it can.
            hds_thresh: 0,
            hds_thresh_max: 0,
        }
    }

    fn set_rings(
        dev: Locked<'_, Self>,
        control: &mut Control,
        request: RingRequest,
        extack: &ExtAck<'_>,
    ) -> Result {
        let settings = Settings {
            rx_len: ring_of(request.rx, extack)?,
            tx_len: tx_ring_of(request.tx, extack)?,
            // Off is what the driver prefers: one buffer for each packet instead of two.
            split: request.header_split == HeaderSplit::Enabled,
            ..control.settings
        };

        xdp::check_split(control, settings.split, extack)?;
        Self::reconfigure(dev, control, settings).inspect_err(|error| {
            if *error == ETIMEDOUT {
                extack.set(c"the device did not start again: take the interface down and up");
            }
        })
    }
}
