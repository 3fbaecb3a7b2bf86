// SPDX-License-Identifier: MIT OR Apache-2.0

//! The generic netlink family `ethtool` (Documentation/netlink/specs/ethtool.yaml): what a device
//! memory user must set up and look at. What the family does not offer comes through the older
//! ioctl: driver statistics, register dumps, self-tests, flow rules.

mod channels;
mod coalesce;
mod diagnostics;
mod features;
pub(crate) mod flow_rules;
mod ioctl;
mod link;
mod pause;
mod rings;
mod rss;
mod rss_contexts;
mod rss_ioctl;
mod standard;
mod stats;
mod timestamps;

use netlink_bindings::ethtool::{HeaderFlags, PushHeader, Request};
use netlink_bindings::utils::Pusher;

pub use channels::{ChannelChange, Channels};
pub use coalesce::{Coalesce, queue_coalesce, set_queue_coalesce};
pub use diagnostics::{
    DriverInfo, RegisterDump, SelfTest, Timestamping, WakeOnLan, driver_info, identify,
    message_level, registers, self_test, set_message_level, set_wake_on_lan, timestamping,
    wake_on_lan,
};
pub use features::Features;
pub use flow_rules::{
    FlowAction, FlowRule, FlowRules, FlowType, Masked, RulePlace, delete_flow_rule, flow_rules,
    insert_flow_rule,
};
pub use link::{LinkModeChange, LinkModes};
pub use pause::Pause;
pub use rings::{RingChange, Rings, TcpDataSplit};
pub use rss::{Flow, HashFields, Indirection, Rss, RssChange};
pub use standard::StandardStats;
pub use stats::driver_stats;
pub use timestamps::TxTimestampStats;

pub use crate::operations::ethtool as operations;

use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::{Netlink, Subject};

/// A client of the family, in the network namespace of the thread that first uses it.
#[derive(Debug)]
pub struct Ethtool {
    pub(crate) netlink: Netlink,
}

impl Default for Ethtool {
    fn default() -> Self {
        Self::new()
    }
}

impl Ethtool {
    /// A client; its socket opens with the first request.
    #[must_use]
    pub fn new() -> Self {
        Self {
            netlink: Netlink::default(),
        }
    }

    /// Whether the interface has link, as `ethtool <interface>` tells it; none if its driver does
    /// not know.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`], or what the kernel refuses.
    pub fn link(&mut self, interface: Interface) -> Result<Option<bool>, RequestError> {
        let mut request = Request::new().op_linkstate_get_do();
        request.header_mut().cmd = command::LINKSTATE_GET;
        name_interface(request.encode().nested_header(), interface);
        let subject = Subject {
            operation: "ethtool linkstate-get",
            interface,
        };
        self.netlink.one(subject, &request, |reply| {
            Ok(reply.get_link().ok().map(|up| up != 0))
        })
    }
}

/// Commands of include/uapi/linux/ethtool_netlink_generated.h.
///
/// The generated requests carry other numbers from the fourth on: the specification numbers
/// requests and replies apart (`enum-model: directional`), the generator together.
mod command {
    pub(super) const LINKMODES_GET: u8 = 4;
    pub(super) const LINKMODES_SET: u8 = 5;
    pub(super) const LINKSTATE_GET: u8 = 6;
    pub(super) const FEATURES_GET: u8 = 11;
    pub(super) const FEATURES_SET: u8 = 12;
    pub(super) const RINGS_GET: u8 = 15;
    pub(super) const RINGS_SET: u8 = 16;
    pub(super) const CHANNELS_GET: u8 = 17;
    pub(super) const CHANNELS_SET: u8 = 18;
    pub(super) const COALESCE_GET: u8 = 19;
    pub(super) const COALESCE_SET: u8 = 20;
    pub(super) const PAUSE_GET: u8 = 21;
    pub(super) const PAUSE_SET: u8 = 22;
    pub(super) const TSINFO_GET: u8 = 25;
    pub(super) const STATS_GET: u8 = 32;
    pub(super) const RSS_GET: u8 = 38;
    pub(super) const RSS_SET: u8 = 48;
    pub(super) const RSS_CREATE_ACT: u8 = 49;
    pub(super) const RSS_DELETE_ACT: u8 = 50;
}

/// Fills a request's header: which interface it is about, and that statistics are wanted.
fn name_interface_with_stats<P: Pusher>(header: PushHeader<P>, interface: Interface) -> P {
    header
        .push_dev_index(interface.index())
        .push_flags(HeaderFlags::Stats as u32)
        .end_nested()
}

/// Fills a request's header: which interface it is about.
fn name_interface<P: Pusher>(header: PushHeader<P>, interface: Interface) -> P {
    header.push_dev_index(interface.index()).end_nested()
}
