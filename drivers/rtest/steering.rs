// SPDX-License-Identifier: GPL-2.0

//! Channels, rings, RSS and flow rules. The NIC receives nothing and only stores its configuration. It
//! has RSS contexts, which no device of the other drivers has, and rules that direct flows to them.

use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        ChannelCounts,
        Channels,
        ExtAck,
        FlowPlace,
        FlowRule,
        FlowRules,
        HashFunction,
        HeaderSplit,
        RingParams,
        RingRequest,
        Rings,
        Rss,
        RssChange,
        RssContexts, //
    }, //
};

use crate::{
    Control,
    Nic, //
};

/// RX queues, and one TX queue.
pub(crate) const RX_QUEUES: u32 = 3;
const KEY_LEN: usize = 52;
const ENTRIES: usize = 6;
const CONTEXTS: usize = 2;
const PLACES: usize = 4;

type Table = [u32; ENTRIES];

/// What a user may set.
pub(crate) struct Steering {
    key: [u8; KEY_LEN],
    table: Table,
    contexts: [Option<Table>; CONTEXTS],
    rules: [Option<FlowRule>; PLACES],
    split: HeaderSplit,
}

impl Steering {
    pub(crate) const fn new() -> Self {
        Self {
            key: [0x5a; KEY_LEN],
            table: [0, 1, 2, 0, 1, 2],
            contexts: [None; CONTEXTS],
            rules: [None; PLACES],
            split: HeaderSplit::Disabled,
        }
    }

    /// Where a context is kept. Numbers count from 1.
    fn context(&mut self, number: u32) -> Option<&mut Option<Table>> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;

        self.contexts.get_mut(index)
    }

    fn rule(&mut self, place: u32) -> Option<&mut Option<FlowRule>> {
        self.rules.get_mut(usize::try_from(place).ok()?)
    }

    pub(crate) fn remove_rules(&mut self) {
        self.rules = [None; PLACES];
    }
}

#[vtable]
impl Channels for Nic {
    fn channels(_control: &Control) -> ChannelCounts {
        ChannelCounts {
            rx: RX_QUEUES,
            tx: 1,
            ..ChannelCounts::default()
        }
    }

    fn max_channels(control: &Control) -> ChannelCounts {
        Self::channels(control)
    }
}

#[vtable]
impl RingParams for Nic {
    const HEADER_SPLIT: bool = true;

    fn rings(control: &Control) -> Rings {
        Rings {
            rx: 1,
            tx: 1,
            rx_max: 1,
            tx_max: 1,
            header_split: control.steering.split,
            hds_thresh: 0,
            hds_thresh_max: 0,
        }
    }

    fn set_rings(
        _dev: Locked<'_, Self>,
        control: &mut Control,
        request: RingRequest,
        _extack: &ExtAck<'_>,
    ) -> Result {
        control.steering.split = match request.header_split {
            HeaderSplit::Auto => HeaderSplit::Disabled,
            split => split,
        };
        Ok(())
    }
}

/// A hash with a longer key, by another function, and a table whose length is no power of two.
#[vtable]
impl Rss for Nic {
    const RSS_KEY_LEN: usize = KEY_LEN;
    const RSS_ENTRIES: usize = ENTRIES;

    fn rss(control: &Control, key: Option<&mut [u8]>, table: Option<&mut [u32]>) -> HashFunction {
        if let Some(key) = key {
            for (to, from) in key.iter_mut().zip(control.steering.key) {
                *to = from;
            }
        }
        if let Some(table) = table {
            for (to, from) in table.iter_mut().zip(control.steering.table) {
                *to = from;
            }
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
            control.steering.key = key.try_into().map_err(|_| EINVAL)?;
        }
        if let Some(table) = change.table {
            control.steering.table = table.try_into().map_err(|_| EINVAL)?;
        }
        Ok(())
    }
}

impl RssContexts for Nic {
    // CAST: A small constant.
    const RSS_CONTEXTS: u32 = CONTEXTS as u32;

    fn set_rss_context(
        _dev: Locked<'_, Self>,
        control: &mut Control,
        context: u32,
        table: &[u32],
        _extack: &ExtAck<'_>,
    ) -> Result {
        let table = table.try_into().map_err(|_| EINVAL)?;

        *control.steering.context(context).ok_or(EPROTO)? = Some(table);
        Ok(())
    }

    fn remove_rss_context(_dev: Locked<'_, Self>, control: &mut Control, context: u32) {
        if let Some(context) = control.steering.context(context) {
            *context = None;
        }
    }
}

impl FlowRules for Nic {
    // CAST: A small constant.
    const FLOW_PLACES: u32 = PLACES as u32;

    fn flow_rule(control: &Control, place: u32) -> Option<FlowRule> {
        *control.steering.rules.get(usize::try_from(place).ok()?)?
    }

    fn insert_flow_rule(
        _dev: Locked<'_, Self>,
        control: &mut Control,
        place: FlowPlace,
        rule: &FlowRule,
    ) -> Result<u32> {
        let free = |place: &u32| Self::flow_rule(control, *place).is_none();
        let place = match place {
            FlowPlace::At(place) => Some(place),
            FlowPlace::First => (0..Self::FLOW_PLACES).find(free),
            FlowPlace::Last => (0..Self::FLOW_PLACES).rfind(free),
        };
        let place = place.ok_or(ENOSPC)?;

        *control.steering.rule(place).ok_or(EINVAL)? = Some(*rule);
        Ok(place)
    }

    fn delete_flow_rule(_dev: Locked<'_, Self>, control: &mut Control, place: u32) -> Result {
        let rule = control.steering.rule(place).ok_or(ENOENT)?;

        rule.take().map(|_| ()).ok_or(ENOENT)
    }
}
