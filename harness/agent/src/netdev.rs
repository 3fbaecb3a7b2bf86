// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the netdev family says beside what is asked for as it is, in the namespace of the calling
//! thread.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use devmem_tcp::{interface::Interface, netdev::Netdev};
use netlink_bindings::netdev::Request;
use netlink_socket2::NetlinkSocket;
use protocol::netdev::PagePool;

use crate::rtnetlink::index_of;

/// The XDP features of an interface (`enum netdev_xdp_act`).
pub(crate) fn xdp_features(interface: &str) -> Result<u64> {
    let mut request = Request::new().op_dev_get_do();
    request.encode().push_ifindex(index_of(interface)?);
    let mut socket = NetlinkSocket::new();
    let mut replies = socket.request(&request)?;
    Ok(replies.recv_one()?.get_xdp_features()?)
}

/// Sums over the queues of an interface.
pub(crate) fn interface_queue_stats(interface: &str) -> Result<BTreeMap<String, u64>> {
    let stats = Netdev::new().device_stats(Interface::by_name(interface)?)?;
    let stats = stats.context("the driver keeps no statistics of queues")?;
    Ok(stats.counters)
}

/// Page pools whose interface is gone.
pub(crate) fn stray_pools() -> Result<Vec<PagePool>> {
    let pools = Netdev::new().all_page_pools()?.into_iter();
    Ok(pools.filter(|pool| pool.interface.is_none()).collect())
}
