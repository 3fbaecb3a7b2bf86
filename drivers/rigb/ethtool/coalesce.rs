// SPDX-License-Identifier: GPL-2.0

//! Interrupt coalescing: EITR, a register of each vector, set by the user or by DIM.

use i82576::regs::eitr;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use net::{
    device::Locked,
    dim::{
        self,
        Dim, //
    },
    ethtool::{
        Coalesce,
        Coalescing,
        ExtAck, //
    },
};

use crate::{
    hw::Hw,
    netdev::{
        Adapter,
        Control, //
    },
};

/// At first: at most one interrupt of a vector in this time. The first one after a pause comes at
/// once. In this time the wire brings 50 KB, which fit any ring.
pub(crate) const DEFAULT: Coalesce = Coalesce {
    rx_usecs: 400,
    adaptive_rx: false,
};

/// How DIM sets the interval of a vector.
pub(crate) struct Moderator<'bound> {
    hw: Arc<Hw<'bound>>,
    vector: u16,
}

impl dim::Moderate for Moderator<'_> {
    fn set_interval(&self, us: u16) {
        self.hw.set_interval(self.vector, us.into());
    }
}

impl<'bound> Coalescing for Adapter<'bound> {
    fn coalesce(control: &Control<'bound>, pair: Option<u32>) -> Result<Coalesce> {
        let of = control.coalesce.get(in_use(control, pair.unwrap_or(0))?);

        of.copied().ok_or(EINVAL)
    }

    fn set_coalesce(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
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
            // Those that are not in use, too: they may come.
            None => 0..control.pairs.len(),
        };

        // All memory first: what follows does not fail.
        let mut dims = KVec::new();
        if coalesce.adaptive_rx {
            for index in pairs.clone() {
                let moderator = Moderator {
                    hw: hw.clone(),
                    vector: u16::try_from(index)?,
                };
                dims.push(Dim::new(moderator)?, GFP_KERNEL)?;
            }
        }
        let mut dims = dims.into_iter();

        let all = control.pairs.iter_mut().zip(control.coalesce.iter_mut());
        for (index, (pair, now)) in all.enumerate().skip(pairs.start).take(pairs.len()) {
            let dim = dims.next();

            // One that adapts already goes on as it does.
            if coalesce.adaptive_rx != now.adaptive_rx {
                pair.change_state(dev, |state| state.dim = dim);
            }
            *now = coalesce;
            if !coalesce.adaptive_rx {
                // CAST: There are at most 16 queue pairs.
                hw.set_interval(index as u16, coalesce.rx_usecs);
            }
        }
        Ok(())
    }
}

/// `index`, if that is a queue pair in use.
fn in_use(control: &Control<'_>, index: u32) -> Result<usize> {
    if index < u32::from(control.in_use) {
        Ok(index as usize)
    } else {
        Err(EINVAL)
    }
}
