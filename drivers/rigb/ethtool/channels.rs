// SPDX-License-Identifier: GPL-2.0

//! Channels: how many queue pairs are in use.
//!
//! Pairs that stay in use do not notice: only those that come are started, and only those that go
//! are stopped. All pairs keep their NAPI, vector and counters, in use or not.

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
    Rings, //
};

impl<'bound> Channels for Adapter<'bound> {
    fn channels(control: &Control<'bound>) -> ChannelCounts {
        ChannelCounts {
            combined: u32::from(control.in_use),
            // CAST: There are at most 16 queue pairs.
            combined_max: control.pairs.len() as u32,
            // The link's.
            other: 1,
        }
    }

    fn set_channels(
        dev: Locked<'_, Self>,
        rtnl: Rtnl<'_>,
        control: &mut Control<'bound>,
        combined: u32,
    ) -> Result {
        let wanted = u16::try_from(combined)?;

        if usize::from(wanted) > control.pairs.len() {
            return Err(EINVAL);
        }
        if wanted > control.in_use {
            grow(dev, rtnl, control, wanted)
        } else {
            shrink(dev, rtnl, control, wanted)
        }
    }
}

/// The queues are there before anything is sent to them.
fn grow<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    rtnl: Rtnl<'_>,
    control: &mut Control<'bound>,
    wanted: u16,
) -> Result {
    let new = control.in_use..wanted;

    if dev.is_running() {
        let rings = Rings::new(dev, control, new.clone(), &control.settings)?;

        Adapter::start_pairs(dev, control, rings)
            .and_then(|()| dev.set_queues(rtnl, wanted.into()))
            .inspect_err(|_| retire(dev, control, new.clone()))?;
        control.poll_pairs(new);
    } else {
        dev.set_queues(rtnl, wanted.into())?;
    }
    control.in_use = wanted;
    spread(dev, control);
    Ok(())
}

/// Nothing is sent to the queues any more before they go.
fn shrink<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    rtnl: Rtnl<'_>,
    control: &mut Control<'bound>,
    wanted: u16,
) -> Result {
    let old = wanted..control.in_use;

    dev.set_queues(rtnl, wanted.into())?;
    control.in_use = wanted;
    spread(dev, control);
    retire(dev, control, old);
    Ok(())
}

/// Stops queue pairs that nothing is sent to any more.
fn retire<'bound>(
    dev: Locked<'_, Adapter<'bound>>,
    control: &mut Control<'bound>,
    pairs: Range<u16>,
) {
    Adapter::halt_pairs(dev, control, pairs.clone());
    for index in pairs {
        let queue = dev.device().tx_queue(index.into());

        // The watchdog looks at all queues: one that stays stopped, by the driver or by byte queue
        // limits, would time out.
        queue.reset();
        queue.start();
    }
}

/// Sends flows to all queues in use, unless a user has said where they go.
fn spread<'bound>(dev: Locked<'_, Adapter<'bound>>, control: &mut Control<'bound>) {
    if dev.rss_is_users() {
        return;
    }
    control.table = IndirectionTable::spread(control.in_use);
    control.program_rss(&dev.device().driver().hw);
}
