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
        HashFunction,
        Link,
        LinkModes,
        LinkSettings,
        Port,
        Rss,
        RssChange,
        Speed, //
    }, //
};

use crate::{
    Control,
    Nic, //
};

const KEY_LEN: usize = 52;

/// What a user may set.
pub(crate) struct Hardware {
    key: [u8; KEY_LEN],
    tx: Coalesce,
}

impl Hardware {
    pub(crate) const fn new() -> Self {
        Self {
            key: [0x5a; KEY_LEN],
            tx: Coalesce::ZERO,
        }
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

/// A hash with a longer key, by another function, and a table of one entry.
#[vtable]
impl Rss for Nic {
    const RSS_KEY_LEN: usize = KEY_LEN;
    const RSS_ENTRIES: usize = 1;

    fn rss(control: &Control, key: Option<&mut [u8]>, table: Option<&mut [u32]>) -> HashFunction {
        if let Some(key) = key {
            for (to, from) in key.iter_mut().zip(control.hardware.key) {
                *to = from;
            }
        }
        if let Some(table) = table {
            table.fill(0);
        }
        HashFunction::Crc32
    }

    fn set_rss(
        _dev: Locked<'_, Self>,
        control: &mut Control,
        change: RssChange<'_>,
        _extack: &ExtAck<'_>,
    ) -> Result {
        if let Some(key) = change.key {
            control.hardware.key = key.try_into().map_err(|_| EINVAL)?;
        }
        Ok(())
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
