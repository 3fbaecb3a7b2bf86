// SPDX-License-Identifier: MIT OR Apache-2.0

//! What rtnetlink tells of an interface (`ip link`).

use netlink_bindings::utils::find_attr;

use crate::bytes::u32_at;
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::{Subject, route};

/// include/uapi/linux/rtnetlink.h and if_link.h
const RTM_GETLINK: u16 = 18;
const IFLA_MTU: u16 = 4;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;

/// `struct ifinfomsg`: u8 family, u8, u16 type, i32 index, u32 flags, u32 change.
const INFO: usize = 16;

/// An interface's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Link {
    /// It is set up (`IFF_UP`).
    pub up: bool,
    /// It is up, and has a carrier (`IFF_LOWER_UP`).
    pub carrier: bool,
    /// Largest packet, in bytes.
    pub mtu: u32,
    /// An XDP program is attached, in whatever mode.
    pub xdp: bool,
}

impl Interface {
    /// Its state, which takes no privilege.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`] if it doesn't exist.
    pub fn link(self) -> Result<Link, RequestError> {
        let subject = Subject {
            operation: "rtnetlink getlink",
            interface: self,
        };
        let mut request = [0; INFO];
        request[4..8].copy_from_slice(&self.index().to_ne_bytes());
        route(subject, RTM_GETLINK, &request, |reply| {
            decode(reply).ok_or_else(|| subject.incomplete("no state, or no MTU"))
        })
    }
}

pub(crate) fn decode(reply: &[u8]) -> Option<Link> {
    let flags = u32_at(reply, 8)? as i32;
    let attributes = reply.get(INFO..)?;
    let attached = find_attr(attributes, IFLA_XDP)
        .and_then(|xdp| find_attr(xdp, IFLA_XDP_ATTACHED)?.first().copied());
    Some(Link {
        up: flags & libc::IFF_UP != 0,
        carrier: flags & libc::IFF_LOWER_UP != 0,
        mtu: u32_at(find_attr(attributes, IFLA_MTU)?, 0)?,
        xdp: attached.is_some_and(|mode| mode != 0),
    })
}

#[cfg(test)]
mod tests {
    use netlink_bindings::utils::push_header;

    use super::*;

    fn reply(flags: i32, mode: u8) -> Vec<u8> {
        let mut reply = vec![0; INFO];
        reply[8..12].copy_from_slice(&flags.to_ne_bytes());
        push_header(&mut reply, IFLA_MTU, 4);
        reply.extend(9000u32.to_ne_bytes());
        push_header(&mut reply, IFLA_XDP, 8);
        push_header(&mut reply, IFLA_XDP_ATTACHED, 1);
        reply.extend([mode, 0, 0, 0]);
        reply
    }

    #[test]
    fn flags_mtu_and_an_xdp_program_come_out() {
        let expected = Link {
            up: true,
            carrier: false,
            mtu: 9000,
            xdp: false,
        };
        assert_eq!(decode(&reply(libc::IFF_UP, 0)), Some(expected));
        for mode in 1..=4 {
            let xdp = decode(&reply(0, mode)).expect("a whole reply").xdp;
            assert!(xdp, "a program of mode {mode} must be seen");
        }
    }

    #[test]
    fn a_reply_that_is_cut_has_no_state() {
        let whole = reply(0, 0);
        for len in 0..INFO + 8 {
            assert_eq!(decode(&whole[..len]), None, "of {len} bytes");
        }
    }

    #[test]
    fn the_loopback_interface_is_among_all_and_has_an_mtu() {
        let all = Interface::all().expect("a list");
        let loopback = Interface::by_name("lo").expect("every namespace has one");
        assert!(all.contains(&loopback), "{all:?}");
        assert!(loopback.link().expect("it exists").mtu > 0);
        let gone = Interface::from_index(i32::MAX as u32).link();
        assert!(matches!(gone, Err(RequestError::NoSuchInterface { .. })));
    }
}
