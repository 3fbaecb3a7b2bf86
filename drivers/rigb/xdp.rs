// SPDX-License-Identifier: GPL-2.0

//! Attaches and detaches XDP programs.
//!
//! The first program needs different buffers, and so new rings, as a new MTU does. Replacing or
//! detaching it happens between two polls of each NAPI: that needs no memory, and loses no packet.
//! Buffers keep the headroom until new rings are allocated for another reason.

use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::ExtAck,
    xdp::{
        Program,
        Xdp, //
    }, //
};

use crate::{
    netdev::{
        Adapter,
        Control, //
    },
    rx, //
};

impl<'bound> Xdp for Adapter<'bound> {
    type Metadata = rx::XdpMetadata;

    const FRAGMENTS: bool = true;

    fn set_program(
        dev: Locked<'_, Self>,
        control: &mut Control,
        program: Option<Program>,
        _extack: &ExtAck<'_>,
    ) -> Result {
        let old = core::mem::replace(&mut control.program, program);

        if control.program.is_none() || control.settings.xdp {
            replace_program(dev, control);
            return Ok(());
        }
        Self::reconfigure(dev, control, control.settings).inspect_err(|_| control.program = old)
    }
}

/// Header split stays off while there is an AF_XDP pool.
///
/// # Errors
///
/// `EBUSY`.
pub(crate) fn check_split(control: &Control, split: bool, extack: &ExtAck<'_>) -> Result {
    if split && control.xsk.any() {
        extack.set(c"tcp-data-split can not be enabled with zero-copy AF_XDP");
        return Err(EBUSY);
    }
    Ok(())
}

/// Replaces the program of running queues by `control.program`.
fn replace_program(dev: Locked<'_, Adapter<'_>>, control: &Control) {
    for index in 0..control.pairs {
        let _ = dev.change_napi(index.into(), |state| {
            if let Some(rx) = &mut state.rx {
                rx.set_program(control.program.clone());
            }
        });
    }
}
