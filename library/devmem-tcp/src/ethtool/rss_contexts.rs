// SPDX-License-Identifier: MIT OR Apache-2.0

//! Further contexts of receive side scaling: tables of which each spreads the flows that rules send to it
//! (`rss-create-act`, `rss-delete-act`; `ethtool -X <interface> context new`).
//!
//! By netlink, which takes Linux 6.17 as [`super::RssChange`] does, and says why it refuses. The ioctl `ETHTOOL_SRSSH`
//! is older, and does neither.

use netlink_bindings::ethtool::{OpRssCreateActDo, OpRssDeleteActDo, Request};

use super::rss::table;
use super::{Ethtool, Indirection, command, name_interface};
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

impl Ethtool {
    /// Makes an RSS context with this indirection table, and returns its number.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] if the driver has none, [`RequestError::KernelTooOld`] before Linux 6.17,
    /// [`RequestError::NotPrivileged`] without `CAP_NET_ADMIN`, [`RequestError::Refused`] for a queue that does not
    /// exist, a table of the wrong length, or if there is no further one.
    pub fn create_rss_context(
        &mut self,
        interface: Interface,
        indirection: &Indirection,
    ) -> Result<u32, RequestError> {
        let subject = Subject {
            operation: "ethtool rss-create-act",
            interface,
        };
        let request = creation(interface, indirection);
        self.netlink.one(subject, &request, |reply| {
            let number = reply.get_context();
            number.map_err(|_| subject.incomplete("no number of a context"))
        })
    }

    /// Deletes an RSS context.
    ///
    /// # Errors
    ///
    /// [`RequestError::Refused`] if there is none of this number, or a rule sends flows to it.
    pub fn delete_rss_context(
        &mut self,
        interface: Interface,
        context: u32,
    ) -> Result<(), RequestError> {
        let subject = Subject {
            operation: "ethtool rss-delete-act",
            interface,
        };
        self.netlink
            .acknowledged(subject, &deletion(interface, context))
    }
}

fn creation(interface: Interface, indirection: &Indirection) -> OpRssCreateActDo<'static> {
    let mut request = Request::new().op_rss_create_act_do();
    request.header_mut().cmd = command::RSS_CREATE_ACT;
    let attributes = name_interface(request.encode().nested_header(), interface);
    match indirection {
        Indirection::Queues(_) => drop(attributes.push_indir(&table(indirection))),
        // An empty table is refused. Without one it is as after boot.
        Indirection::Default => drop(attributes),
    }
    request
}

fn deletion(interface: Interface, context: u32) -> OpRssDeleteActDo<'static> {
    let mut request = Request::new().op_rss_delete_act_do();
    request.header_mut().cmd = command::RSS_DELETE_ACT;
    name_interface(request.encode().nested_header(), interface).push_context(context);
    request
}

#[cfg(test)]
mod tests {
    use netlink_bindings::traits::NetlinkRequest;

    use super::*;

    /// An attribute: `struct nlattr`, and what is in it.
    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = (4 + value.len() as u16).to_ne_bytes();
        [&len[..], &kind.to_ne_bytes(), value].concat()
    }

    /// `struct genlmsghdr` of a command, and `ETHTOOL_A_RSS_HEADER` with `ETHTOOL_A_HEADER_DEV_INDEX`.
    fn head(command: u8, index: u32) -> Vec<u8> {
        const NLA_F_NESTED: u16 = 1 << 15;
        let device = attribute(1, &index.to_ne_bytes());
        [vec![command, 1, 0, 0], attribute(1 | NLA_F_NESTED, &device)].concat()
    }

    // Numbers of include/uapi/linux/ethtool_netlink_generated.h.
    #[test]
    fn a_context_is_asked_for_as_the_kernel_defines_it() {
        let interface = Interface::from_index(7);
        let request = creation(interface, &Indirection::Queues(vec![3, 1]));
        let queues = [3_u32, 1].map(u32::to_ne_bytes).concat();
        let expected = [head(49, 7), attribute(4, &queues)].concat();
        assert_eq!(request.payload(), expected, "ETHTOOL_A_RSS_INDIR");
        let request = creation(interface, &Indirection::Default);
        assert_eq!(request.payload(), head(49, 7));
    }

    #[test]
    fn a_context_is_deleted_as_the_kernel_defines_it() {
        let request = deletion(Interface::from_index(7), 5);
        let expected = [head(50, 7), attribute(2, &5_u32.to_ne_bytes())].concat();
        assert_eq!(request.payload(), expected, "ETHTOOL_A_RSS_CONTEXT");
    }
}
