// SPDX-License-Identifier: GPL-2.0

//! What the NIC says of its hardware: nothing of it is as in the other drivers' devices.

use core::num::NonZero;

use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        Coalesce,
        CoalesceParameters,
        Coalescing,
        Duplex,
        ExtAck,
        Link,
        LinkModes,
        LinkSettings,
        Port,
        Speed, //
    }, //
};

use crate::{
    Control,
    Nic, //
};

/// What a user may set.
pub(crate) struct Hardware {
    tx: Coalesce,
}

impl Hardware {
    pub(crate) const fn new() -> Self {
        Self { tx: Coalesce::ZERO }
    }
}

/// Fibre, four lanes of it, nothing to negotiate.
#[vtable]
impl LinkSettings for Nic {
    const LANES: bool = true;

    fn link(_dev: Locked<'_, Self>, _control: &mut Control) -> Result<Link> {
        Ok(Link {
            speed: Some(Speed {
                mbps: 100_000,
                duplex: Duplex::Full,
                lanes: NonZero::new(4),
            }),
            port: Port::Fibre,
            autoneg: false,
            supported: LinkModes::MODE_100000baseSR4_Full.with(LinkModes::MODE_FIBRE),
            advertised: LinkModes::NONE,
            partner: LinkModes::NONE,
        })
    }
}

/// Interrupts are coalesced for what is sent, and not for what is received.
#[vtable]
impl Coalescing for Nic {
    const COALESCE_PARAMETERS: CoalesceParameters = CoalesceParameters::TX_USECS;

    fn coalesce(control: &Control, _queue: Option<u32>) -> Result<Coalesce> {
        Ok(control.hardware.tx)
    }

    fn set_coalesce(
        _dev: Locked<'_, Self>,
        control: &mut Control,
        _queue: Option<u32>,
        coalesce: Coalesce,
        _extack: &ExtAck<'_>,
    ) -> Result {
        control.hardware.tx = coalesce;
        Ok(())
    }
}
