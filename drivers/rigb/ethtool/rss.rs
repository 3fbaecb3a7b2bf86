// SPDX-License-Identifier: GPL-2.0

//! Receive side scaling: key, indirection table, and what is hashed.
//!
//! The device hashes by both addresses, or by these and both ports, as it is: there is no
//! transformation that makes a hash symmetric, and no hash of one side alone.

use i82576::rss::{
    self,
    Hashed, //
};
use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        ExtAck,
        Flow,
        HashFields,
        HashFunction,
        Rss,
        RssChange, //
    },
};

use crate::netdev::{
    Adapter,
    Control, //
};

#[vtable]
impl<'bound> Rss for Adapter<'bound> {
    const RSS_KEY_LEN: usize = rss::KEY_SIZE;
    const RSS_ENTRIES: usize = rss::TABLE_SIZE;

    fn rss(control: &Control, key: Option<&mut [u8]>, table: Option<&mut [u32]>) -> HashFunction {
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
        HashFunction::Toeplitz
    }

    fn set_rss(
        dev: Locked<'_, Self>,
        control: &mut Control,
        change: RssChange<'_>,
        extack: &ExtAck<'_>,
    ) -> Result {
        if !matches!(change.function, None | Some(HashFunction::Toeplitz)) {
            extack.set(c"the hash is Toeplitz, and no other");
            return Err(EOPNOTSUPP);
        }
        let mut new = *control.table.entries();

        if let Some(table) = change.table {
            for (to, from) in new.iter_mut().zip(table) {
                *to = u8::try_from(*from)?;
            }
        }
        let table = rss::IndirectionTable::new(new).ok_or_else(|| {
            extack.set(c"no such queue");
            EINVAL
        })?;

        if let Some(key) = change.key {
            control.key = rss::Key::new(key.try_into().map_err(|_| EINVAL)?);
        }
        control.table = table;
        control.program_rss(&dev.device().driver().hw);
        Ok(())
    }

    fn hash_fields(control: &Control, flow: Flow) -> HashFields {
        match control.effective_hash_fields().of(device_flow(flow)) {
            Hashed::Nothing => HashFields::NONE,
            Hashed::Addresses => HashFields::ADDRESSES,
            Hashed::AddressesAndPorts => HashFields::ADDRESSES_AND_PORTS,
        }
    }

    fn set_hash_fields(
        dev: Locked<'_, Self>,
        control: &mut Control,
        flow: Flow,
        fields: HashFields,
        extack: &ExtAck<'_>,
    ) -> Result {
        if fields == Self::hash_fields(control, flow) {
            return Ok(());
        }
        if control.settings.split {
            extack.set(c"with tcp-data-split on, TCP is hashed with its ports, and nothing else");
            return Err(EOPNOTSUPP);
        }

        let hashed = match fields {
            HashFields::ADDRESSES => Some(Hashed::Addresses),
            HashFields::ADDRESSES_AND_PORTS => Some(Hashed::AddressesAndPorts),
            _ => None,
        };
        control.hash_fields = hashed
            .and_then(|hashed| control.hash_fields.with(device_flow(flow), hashed))
            .ok_or_else(|| {
                extack.set(c"all IP is hashed by both addresses, TCP and UDP by both ports, too");
                EOPNOTSUPP
            })?;
        control.program_rss(&dev.device().driver().hw);
        Ok(())
    }
}

fn device_flow(flow: Flow) -> rss::Flow {
    match flow {
        Flow::Tcp4 => rss::Flow::Tcp4,
        Flow::Tcp6 => rss::Flow::Tcp6,
        Flow::Udp4 => rss::Flow::Udp4,
        Flow::Udp6 => rss::Flow::Udp6,
        Flow::OtherIp => rss::Flow::Other,
    }
}
