// SPDX-License-Identifier: MIT OR Apache-2.0

//! Links, addresses and neighbours over rtnetlink, in the namespace of the calling thread.

use std::{
    ffi::CStr,
    net::IpAddr,
    os::fd::{AsRawFd, RawFd},
};

use anyhow::{Context, Result, bail};
use netlink_bindings::{
    rt_addr::{self, IfaFlags, Ifaddrmsg},
    rt_link::{self, IfinfoFlags, Ifinfomsg, IterableLinkAttrs},
    rt_neigh::{self, Ndmsg, NtfFlags, NudState},
    traits::NetlinkRequest,
};
use netlink_socket2::NetlinkSocket;
use protocol::{
    link::{Interface, LinkStats},
    net::{Mac, Prefix},
};

use crate::netns;

/// All interfaces.
pub(crate) fn list() -> Result<Vec<Interface>> {
    links(interface)
}

/// The index of an interface. ENODEV when there is none.
pub(crate) fn index_of(name: &str) -> Result<u32> {
    rustix::net::netdevice::name_to_index(
        rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::DGRAM,
            None,
        )?,
        name,
    )
    .with_context(|| format!("looking for interface {name}"))
}

/// Statistics of an interface.
pub(crate) fn stats(name: &str) -> Result<LinkStats> {
    let index = index_of(name)?;
    let all = links(|header, attributes| Ok((header.ifi_index, attributes.get_stats64().ok())))?;
    let stats = all.into_iter().find(|(found, _)| *found == index as i32);
    let Some((_, Some(stats))) = stats else {
        bail!("interface {name} has no statistics");
    };
    Ok(LinkStats {
        rx_packets: stats.rx_packets,
        tx_packets: stats.tx_packets,
        rx_bytes: stats.rx_bytes,
        tx_bytes: stats.tx_bytes,
        rx_errors: stats.rx_errors,
        tx_errors: stats.tx_errors,
        rx_dropped: stats.rx_dropped,
        tx_dropped: stats.tx_dropped,
        multicast: stats.multicast,
        rx_length_errors: stats.rx_length_errors,
        rx_over_errors: stats.rx_over_errors,
        rx_crc_errors: stats.rx_crc_errors,
        rx_frame_errors: stats.rx_frame_errors,
        rx_fifo_errors: stats.rx_fifo_errors,
        rx_missed_errors: stats.rx_missed_errors,
        rx_nohandler: stats.rx_nohandler,
        tx_carrier_errors: stats.tx_carrier_errors,
        tx_fifo_errors: stats.tx_fifo_errors,
    })
}

/// Brings an interface up or down.
pub(crate) fn set_up(name: &str, up: bool) -> Result<()> {
    set_flag(name, IfinfoFlags::Up, up).with_context(|| {
        let direction = if up { "up" } else { "down" };
        format!("setting {name} {direction}")
    })
}

/// Makes an interface receive all frames, or all multicast ones.
pub(crate) fn set_receive_mode(
    name: &str,
    promiscuous: Option<bool>,
    all_multicast: Option<bool>,
) -> Result<()> {
    for (flag, on) in [
        (IfinfoFlags::Promisc, promiscuous),
        (IfinfoFlags::AllMulti, all_multicast),
    ] {
        if let Some(on) = on {
            set_flag(name, flag, on).with_context(|| format!("setting {flag:?} of {name}"))?;
        }
    }
    Ok(())
}

fn set_flag(name: &str, flag: IfinfoFlags, on: bool) -> Result<()> {
    let flag = flag as u32;
    let header = Ifinfomsg {
        ifi_index: index_of(name)? as i32,
        ifi_flags: if on { flag } else { 0 },
        ifi_change: flag,
        ..Ifinfomsg::new()
    };
    acknowledged(&rt_link::Request::new().op_setlink_do(&header))
}

/// Changes the MTU of an interface.
pub(crate) fn set_mtu(name: &str, mtu: u32) -> Result<()> {
    let mut request = rt_link::Request::new().op_setlink_do(&header_of(name)?);
    request.encode().push_mtu(mtu);
    acknowledged(&request).with_context(|| format!("setting the MTU of {name} to {mtu}"))
}

/// Changes the Ethernet address of an interface.
pub(crate) fn set_mac(name: &str, mac: Mac) -> Result<()> {
    let mut request = rt_link::Request::new().op_setlink_do(&header_of(name)?);
    request.encode().push_address(&mac.0);
    acknowledged(&request).with_context(|| format!("setting the address of {name} to {mac}"))
}

/// Makes a VLAN interface.
pub(crate) fn add_vlan(on: &str, name: &str, id: u16) -> Result<()> {
    let mut request = rt_link::Request::new()
        .set_create()
        .set_excl()
        .op_newlink_do(&Ifinfomsg::new());
    request
        .encode()
        .push_link(index_of(on)?)
        .push_ifname_bytes(name.as_bytes())
        .nested_linkinfo()
        .push_kind(c"vlan")
        .nested_data_vlan()
        .push_id(id);
    acknowledged(&request).with_context(|| format!("making {name}, VLAN {id} of {on}"))
}

/// Removes an interface.
pub(crate) fn remove(name: &str) -> Result<()> {
    let request = rt_link::Request::new().op_dellink_do(&header_of(name)?);
    acknowledged(&request).with_context(|| format!("removing {name}"))
}

/// Attaches an XDP program to an interface in native mode, or detaches the current one.
pub(crate) fn set_xdp(name: &str, program: Option<RawFd>) -> Result<()> {
    /// `XDP_FLAGS_DRV_MODE`: in the driver, or not at all.
    const NATIVE: u32 = 1 << 2;

    let mut request = rt_link::Request::new().op_setlink_do(&header_of(name)?);
    request
        .encode()
        .nested_xdp()
        .push_fd(program.unwrap_or(-1))
        .push_flags(NATIVE);
    acknowledged(&request).with_context(|| format!("setting the XDP program of {name}"))
}

/// Moves an interface into another namespace.
pub(crate) fn move_to(name: &str, to: protocol::Ns, rename: Option<&str>) -> Result<()> {
    let local;
    let target = match to {
        protocol::Ns::Peer => netns::peer()?.as_raw_fd(),
        protocol::Ns::Local => {
            local = std::fs::File::open("/proc/1/ns/net").context("opening /proc/1/ns/net")?;
            local.as_raw_fd()
        }
    };
    let mut request = rt_link::Request::new().op_setlink_do(&header_of(name)?);
    let encoder = request.encode().push_net_ns_fd(target as u32);
    if let Some(rename) = rename {
        drop(encoder.push_ifname_bytes(rename.as_bytes()));
    } else {
        drop(encoder);
    }
    acknowledged(&request).with_context(|| format!("moving {name} to {to:?}"))
}

/// Adds an address to an interface.
pub(crate) fn add_address(name: &str, prefix: Prefix) -> Result<()> {
    let mut header = address_header(name, prefix)?;
    if prefix.address.is_ipv6() {
        // Even with DAD off, an address is tentative until a work item has run.
        header.ifa_flags = IfaFlags::Nodad as u8;
    }
    let mut request = rt_addr::Request::new()
        .set_create()
        .set_excl()
        .op_newaddr_do(&header);
    let encoder = request.encode().push_local(prefix.address);
    if prefix.address.is_ipv4() {
        drop(encoder.push_address(prefix.address));
    } else {
        drop(encoder);
    }
    acknowledged(&request).with_context(|| format!("adding {prefix} to {name}"))
}

/// Removes an address from an interface.
pub(crate) fn remove_address(name: &str, prefix: Prefix) -> Result<()> {
    let mut request = rt_addr::Request::new().op_deladdr_do(&address_header(name, prefix)?);
    request.encode().push_local(prefix.address);
    acknowledged(&request).with_context(|| format!("removing {prefix} from {name}"))
}

/// Adds or replaces a permanent neighbour.
pub(crate) fn add_neighbour(name: &str, address: IpAddr, mac: Mac) -> Result<()> {
    let header = Ndmsg {
        ndm_family: family(address),
        ndm_ifindex: index_of(name)? as i32,
        ndm_state: NudState::Permanent as u16,
        ..Ndmsg::new()
    };
    let mut request = rt_neigh::Request::new()
        .set_create()
        .set_replace()
        .op_newneigh_do(&header);
    request.encode().push_dst(address).push_lladdr(&mac.0);
    acknowledged(&request).with_context(|| format!("adding neighbour {address} to {name}"))
}

/// Adds an address to those that an interface receives.
pub(crate) fn add_filter(name: &str, mac: Mac) -> Result<()> {
    let mut request = rt_neigh::Request::new()
        .set_create()
        .set_excl()
        .op_newneigh_do(&filter_header(name)?);
    request.encode().push_lladdr(&mac.0);
    acknowledged(&request).with_context(|| format!("adding {mac} to what {name} receives"))
}

/// Removes an address from those that an interface receives.
pub(crate) fn remove_filter(name: &str, mac: Mac) -> Result<()> {
    let mut request = rt_neigh::Request::new().op_delneigh_do(&filter_header(name)?);
    request.encode().push_lladdr(&mac.0);
    acknowledged(&request).with_context(|| format!("removing {mac} from what {name} receives"))
}

fn filter_header(name: &str) -> Result<Ndmsg> {
    Ok(Ndmsg {
        ndm_family: libc::PF_BRIDGE as u8,
        ndm_ifindex: index_of(name)? as i32,
        ndm_state: NudState::Permanent as u16,
        ndm_flags: NtfFlags::_Self as u8,
        ..Ndmsg::new()
    })
}

fn acknowledged<R: NetlinkRequest>(request: &R) -> Result<()> {
    NetlinkSocket::new().request(request)?.recv_ack()?;
    Ok(())
}

fn header_of(name: &str) -> Result<Ifinfomsg> {
    Ok(Ifinfomsg {
        ifi_index: index_of(name)? as i32,
        ..Ifinfomsg::new()
    })
}

fn address_header(name: &str, prefix: Prefix) -> Result<Ifaddrmsg> {
    Ok(Ifaddrmsg {
        ifa_index: index_of(name)?,
        ifa_family: family(prefix.address),
        ifa_prefixlen: prefix.length,
        ..Ifaddrmsg::new()
    })
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    family as u8
}

/// Dumps all links and collects what `each` returns for them.
fn links<T>(mut each: impl FnMut(Ifinfomsg, IterableLinkAttrs<'_>) -> Result<T>) -> Result<Vec<T>> {
    let request = rt_link::Request::new().op_getlink_dump(&Ifinfomsg::new());
    let mut socket = NetlinkSocket::new();
    let mut replies = socket.request(&request)?;
    let mut found = Vec::new();
    while let Some((header, attributes)) = replies.recv().transpose().context("listing links")? {
        found.push(each(header, attributes)?);
    }
    Ok(found)
}

fn interface(header: Ifinfomsg, attributes: IterableLinkAttrs<'_>) -> Result<Interface> {
    let text = |value: &CStr| value.to_string_lossy().into_owned();
    let device = attributes.get_parent_dev_name().ok().map(text);
    let bus = attributes.get_parent_dev_bus_name().ok().map(text);
    let driver = device.as_ref().zip(bus).and_then(|(device, bus)| {
        let link = std::fs::read_link(format!("/sys/bus/{bus}/devices/{device}/driver")).ok()?;
        Some(link.file_name()?.to_string_lossy().into_owned())
    });
    let mac = attributes
        .get_address()
        .ok()
        .and_then(|mac| mac.try_into().ok());
    Ok(Interface {
        name: attributes
            .get_ifname()
            .map(text)
            .context("a link without a name")?,
        index: header.ifi_index as u32,
        mac: Mac(mac.unwrap_or_default()),
        mtu: attributes.get_mtu().unwrap_or_default(),
        max_mtu: attributes.get_max_mtu().unwrap_or_default(),
        up: header.ifi_flags & IfinfoFlags::Up as u32 != 0,
        running: header.ifi_flags & IfinfoFlags::Running as u32 != 0,
        carrier: attributes.get_carrier().is_ok_and(|carrier| carrier != 0),
        xdp: attributes
            .get_xdp()
            .and_then(|xdp| xdp.get_attached())
            .is_ok_and(|attached| attached != 0),
        device,
        driver,
        rx_queues: attributes.get_num_rx_queues().unwrap_or_default(),
        tx_queues: attributes.get_num_tx_queues().unwrap_or_default(),
    })
}
