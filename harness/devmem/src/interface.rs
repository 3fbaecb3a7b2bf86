// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names and indices of network interfaces.

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::error::{Error, Refusal, Result};

/// Index of the interface `name` in the network namespace of the calling thread.
///
/// # Errors
///
/// [`Error::NoSuchInterface`] if there is none of that name.
pub fn index(name: &str) -> Result<u32> {
    netdevice::name_to_index(any_socket()?, name).map_err(|errno| Error::NoSuchInterface {
        interface: name.to_owned(),
        refusal: Refusal::from(errno),
    })
}

/// Name of the interface with this index in the network namespace of the calling thread.
///
/// # Errors
///
/// [`Error::NoSuchInterface`] if there is none.
pub fn name(ifindex: u32) -> Result<String> {
    netdevice::index_to_name(any_socket()?, ifindex).map_err(|errno| Error::NoSuchInterface {
        interface: format!("index {ifindex}"),
        refusal: Refusal::from(errno),
    })
}

/// The interface's name and index, for messages: `eth0 (3)`.
pub(crate) fn label(ifindex: u32) -> String {
    match name(ifindex) {
        Ok(name) => format!("{name} ({ifindex})"),
        Err(_) => format!("interface {ifindex}"),
    }
}

/// A socket to ask about interfaces with.
pub(crate) fn any_socket() -> Result<OwnedFd> {
    socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|errno| Error::io("open a socket", errno))
}
