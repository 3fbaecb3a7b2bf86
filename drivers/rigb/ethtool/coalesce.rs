// SPDX-License-Identifier: GPL-2.0

//! Interrupt coalescing: EITR, a register of each vector, set by the user or by DIM.

use i82576::regs::eitr;
use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        Coalesce,
        CoalesceParameters,
        Coalescing,
        ExtAck, //
    },
};

use crate::netdev::{
    Adapter,
    Control, //
};

/// The default minimum interval between a vector's interrupts. The first one after a pause comes at
/// once. In this time the wire brings 50 KB, which fit any ring.
pub(crate) const DEFAULT: Coalesce = Coalesce {
    rx_usecs: 400,
    ..Coalesce::ZERO
};

#[vtable]
impl<'bound> Coalescing for Adapter<'bound> {
    const COALESCE_PARAMETERS: CoalesceParameters =
        CoalesceParameters::RX_USECS.with(CoalesceParameters::USE_ADAPTIVE_RX);
    const COALESCE_PER_QUEUE: bool = true;

    fn coalesce(control: &Control, pair: Option<u32>) -> Result<Coalesce> {
        let of = control.coalesce.get(in_use(control, pair.unwrap_or(0))?);

        of.copied().ok_or(EINVAL)
    }

    fn set_coalesce(
        dev: Locked<'_, Self>,
        control: &mut Control,
        pair: Option<u32>,
        coalesce: Coalesce,
        extack: &ExtAck<'_>,
    ) -> Result {
        let hw = &dev.device().driver().hw;

        if coalesce.rx_usecs > eitr::INTERVAL_MAX {
            extack.set(c"rx-usecs is at most 8191");
            return Err(EINVAL);
        }
        let pairs = match pair {
            Some(index) => {
                let index = in_use(control, index)?;
                index..index + 1
            }
            // Also those that are not in use: they may be later.
            None => 0..control.coalesce.len(),
        };

        let all = (0u16..).zip(control.coalesce.iter_mut());
        for (index, now) in all.skip(pairs.start).take(pairs.len()) {
            // DIM keeps its state where it is enabled already.
            if coalesce.adaptive_rx != now.adaptive_rx {
                dev.moderate_napi(index.into(), coalesce.adaptive_rx)?;
            }
            *now = coalesce;
            if !coalesce.adaptive_rx {
                hw.set_interval(index, coalesce.rx_usecs);
            }
        }
        Ok(())
    }
}

/// `index`, if that is a queue pair in use.
fn in_use(control: &Control, index: u32) -> Result<usize> {
    if index < u32::from(control.in_use) {
        Ok(index as usize)
    } else {
        Err(EINVAL)
    }
}
