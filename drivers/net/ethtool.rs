// SPDX-License-Identifier: GPL-2.0

//! ethtool: how users look at a device and configure it.
//!
//! Each concept has a trait in a file of its own. A driver implements those that its device has, and
//! offers each when it registers, as with
//! [`Unregistered::with_rings`](crate::registration::Unregistered::with_rings). All operations run
//! under the instance lock.
//!
//! C header: `include/linux/ethtool.h`

mod channels;
mod coalesce;
mod flow_rules;
mod flow_spec;
mod identify;
mod link;
mod link_modes;
mod message_level;
mod pause;
mod registers;
mod rings;
mod rss;
mod rss_contexts;
mod self_test;
mod standard;
mod statistics;
mod strings;
pub mod table;
mod timestamping;
mod wake_on_lan;

use core::marker::PhantomData;

use kernel::prelude::*;
use net_bindings as bindings;

pub use self::{
    channels::{
        ChannelCounts,
        Channels, //
    },
    coalesce::{
        Coalesce,
        CoalesceParameters,
        Coalescing, //
    },
    flow_rules::{
        FlowAction,
        FlowAddresses,
        FlowPlace,
        FlowRule,
        FlowRules,
        Masked,
        Transport, //
    },
    identify::{
        Identify,
        Light, //
    },
    link::{
        Duplex,
        Link,
        LinkRequest,
        LinkSettings,
        Port,
        Speed, //
    },
    link_modes::LinkModes,
    message_level::{
        MessageLevel,
        MESSAGE_LINK, //
    },
    pause::{
        FlowControl,
        Pause, //
    },
    registers::Registers,
    rings::{
        HeaderSplit,
        RingParams,
        RingRequest,
        Rings, //
    },
    rss::{
        Flow,
        HashFields,
        HashFunction,
        Rss,
        RssChange, //
    },
    rss_contexts::RssContexts,
    self_test::SelfTest,
    standard::{
        ControlStats,
        MacStats,
        PauseStats,
        SizeErrors,
        SizeStats,
        Sizes,
        StandardStatistics, //
    },
    statistics::Statistics,
    wake_on_lan::{
        WakeEvents,
        WakeOnLan, //
    },
};

/// An explanation of a failure that goes to the user with the errno.
///
/// # Invariants
///
/// The pointer is null, or valid for `'a` and used by nothing else.
pub struct ExtAck<'a>(*mut bindings::netlink_ext_ack, PhantomData<&'a ()>);

impl ExtAck<'_> {
    /// # Safety
    ///
    /// `extack` must be null, or valid and used by nothing else as long as the result is used.
    pub(crate) unsafe fn from_raw(extack: *mut bindings::netlink_ext_ack) -> Self {
        // INVARIANT: As this function requires.
        Self(extack, PhantomData)
    }

    /// Sets the message.
    pub fn set(&self, message: &'static CStr) {
        // SAFETY: By the type invariant. The message lives as long as the module, which cannot go
        // while it is in an operation.
        if let Some(extack) = unsafe { self.0.as_mut() } {
            extack._msg = message.as_char_ptr();
        }
    }
}

/// The C operations of `T`, one by one; [`table`] puts them together.
pub(crate) struct Callbacks<T>(PhantomData<T>);
