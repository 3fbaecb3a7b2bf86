// SPDX-License-Identifier: GPL-2.0

//! Channels: how many queue pairs are in use.
//!
//! Pairs that stay in use are not disturbed: only those that are added are started, and only those
//! that are removed are stopped. All pairs keep their NAPI, vector and counters, in use or not.

use core::ops::Range;

use i82576::rss::IndirectionTable;
use kernel::prelude::*;
use net::{
    device::{
        Locked,
        Rtnl, //
    },
    ethtool::{
        ChannelCounts,
        Channels, //
    },
};

use crate::netdev::{
    Adapter,
    Control,
    Pending,
    Rings, //
};

#[vtable]
impl<'bound> Channels for Adapter<'bound> {
    fn channels(control: &Control) -> ChannelCounts {
        ChannelCounts {
            combined: control.in_use.into(),
            // The link's.
            other: 1,
            ..ChannelCounts::default()
        }
    }

    fn max_channels(control: &Control) -> ChannelCounts {
        ChannelCounts {
            combined: control.pairs.into(),
            ..Self::channels(control)
        }
    }

    fn set_channels(
        dev: Locked<'_, Self>,
        rtnl: Rtnl<'_>,
        control: &mut Control,
        counts: ChannelCounts,
    ) -> Result {
        let wanted = u16::try_from(counts.combined)?;

        if counts.other != Self::channels(control).other {
            return Err(EINVAL);
        }
        if wanted > control.in_use {
            grow(dev, rtnl, control, wanted)
        } else {
            shrink(dev, rtnl, control, wanted)
        }
    }
}

/// Starts new queues before the core and the RSS table use them.
fn grow<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    rtnl: Rtnl<'_>,
    control: &mut Control,
    wanted: u16,
) -> Result {
    let new = control.in_use..wanted;

    if dev.is_running() {
        let rings = Rings::new(dev, control, new.clone(), &control.settings)?;

        Adapter::start_pairs(dev, rings)
            .and_then(|()| dev.set_queues(rtnl, wanted.into(), wanted.into()))
            .inspect_err(|_| retire(dev, new.clone()))?;
        dev.device().driver().poll_pairs(new);
    } else {
        dev.set_queues(rtnl, wanted.into(), wanted.into())?;
    }
    control.in_use = wanted;
    spread(dev, control);
    Ok(())
}

/// Takes queues from the core and the RSS table before they are stopped. The core keeps the RX queues until
/// then: they still receive.
fn shrink<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    rtnl: Rtnl<'_>,
    control: &mut Control,
    wanted: u16,
) -> Result {
    let old = wanted..control.in_use;

    dev.set_queues(rtnl, old.end.into(), wanted.into())?;
    control.in_use = wanted;
    spread(dev, control);
    retire(dev, old);
    dev.set_queues(rtnl, wanted.into(), wanted.into())
}

/// Stops queue pairs that are no longer used.
fn retire(dev: Locked<'_, Adapter<'_>>, pairs: Range<u16>) {
    Adapter::halt_pairs(dev, pairs.clone(), Pending::Send);
    Adapter::retire_pairs(dev, pairs);
}

/// Spreads flows over all queues in use, unless a user has set the RSS table.
fn spread<'bound>(dev: Locked<'_, Adapter<'bound>>, control: &mut Control) {
    if dev.rss_is_users() {
        return;
    }
    control.table = IndirectionTable::spread(control.in_use);
    control.program_rss(&dev.device().driver().hw);
}
