// SPDX-License-Identifier: GPL-2.0

//! Receive side scaling: key and indirection table.

use i82576::rss;
use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        ExtAck,
        Rss, //
    },
};

use crate::netdev::{
    Adapter,
    Control, //
};

impl<'bound> Rss for Adapter<'bound> {
    const RSS_ENTRIES: u32 = rss::TABLE_SIZE as u32;

    fn rss(control: &Control<'bound>, key: Option<&mut [u8]>, table: Option<&mut [u32]>) {
        if let Some(key) = key {
            for (to, from) in key.iter_mut().zip(control.key.bytes()) {
                *to = *from;
            }
        }
        if let Some(table) = table {
            for (to, from) in table.iter_mut().zip(control.table.entries()) {
                *to = u32::from(*from);
            }
        }
    }

    fn set_rss(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        key: Option<&[u8]>,
        table: Option<&[u32]>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let mut new = *control.table.entries();

        if let Some(table) = table {
            for (to, from) in new.iter_mut().zip(table) {
                *to = u8::try_from(*from)?;
            }
        }
        let table = rss::IndirectionTable::new(new).ok_or_else(|| {
            extack.set(c"no such queue");
            EINVAL
        })?;

        if let Some(key) = key {
            control.key = rss::Key::new(key.try_into().map_err(|_| EINVAL)?);
        }
        control.table = table;
        dev.device()
            .driver()
            .hw
            .set_rss(&control.key, &control.table);
        Ok(())
    }
}
