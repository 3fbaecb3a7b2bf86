// SPDX-License-Identifier: MIT OR Apache-2.0

//! Network interfaces.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nameindex;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::error::{Refusal, RequestError};
pub use crate::link::Link;

/// A network interface, in the network namespace of the thread that asks.
///
/// It is only the interface's index: once the interface is gone, all requests fail with
/// [`RequestError::NoSuchInterface`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct Interface {
    index: u32,
}

impl Interface {
    /// Requests that are not about one interface.
    pub(crate) const NONE: Self = Self { index: 0 };

    /// The interface with this index. Requests fail if there is none.
    #[must_use]
    pub const fn from_index(index: u32) -> Self {
        Self { index }
    }

    /// The interface with this name.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`] if there is none.
    pub fn by_name(name: &str) -> Result<Self, RequestError> {
        let index = netdevice::name_to_index(any_socket()?, name);
        index
            .map(Self::from_index)
            .map_err(|errno| RequestError::NoSuchInterface {
                interface: name.to_owned(),
                refusal: Refusal::from(errno),
            })
    }

    /// The interface that has this address.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`] if there is none.
    pub fn by_address(address: IpAddr) -> Result<Self, RequestError> {
        let listed = getifaddrs().map_err(|errno| RequestError::io("getifaddrs", errno))?;
        let found = listed.into_iter().find(|entry| {
            let own = entry.address.as_ref();
            let v4 = own.and_then(|own| Some(IpAddr::V4(own.as_sockaddr_in()?.ip())));
            let v6 = own.and_then(|own| Some(IpAddr::V6(own.as_sockaddr_in6()?.ip())));
            v4.or(v6) == Some(address)
        });
        match found {
            Some(entry) => Self::by_name(&entry.interface_name),
            None => Err(RequestError::NoSuchInterface {
                interface: format!("an interface with the address {address}"),
                refusal: Refusal::from_errno(libc::EADDRNOTAVAIL),
            }),
        }
    }

    /// All interfaces of the network namespace, by index.
    ///
    /// # Errors
    ///
    /// [`RequestError::SystemCall`] if the kernel doesn't list them.
    pub fn all() -> Result<Vec<Self>, RequestError> {
        let listed =
            if_nameindex().map_err(|errno| RequestError::io("list the interfaces", errno))?;
        let mut all: Vec<_> = (&listed)
            .into_iter()
            .map(|entry| Self::from_index(entry.index()))
            .collect();
        all.sort_unstable();
        Ok(all)
    }

    /// Its index.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Its name.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`] if it doesn't exist.
    pub fn name(self) -> Result<String, RequestError> {
        let name = netdevice::index_to_name(any_socket()?, self.index);
        name.map_err(|errno| RequestError::NoSuchInterface {
            interface: format!("an interface with the index {}", self.index),
            refusal: Refusal::from(errno),
        })
    }

    /// Its name and index, for messages: `eth0 (3)`.
    pub(crate) fn label(self) -> String {
        match self.name() {
            Ok(name) => format!("{name} ({})", self.index),
            Err(_) => format!("interface {}", self.index),
        }
    }
}

/// Its name, or its index if it has none (any more).
impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Ok(name) => f.write_str(&name),
            Err(_) => write!(f, "{}", self.index),
        }
    }
}

/// A name, an index or an address, in this order.
impl FromStr for Interface {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        Self::by_name(text).or_else(|error| {
            if let Ok(index) = text.parse() {
                let interface = Self::from_index(index);
                interface.name().map(|_| interface)
            } else if let Ok(address) = text.parse() {
                Self::by_address(address)
            } else {
                Err(error)
            }
        })
    }
}

/// A socket to ask about interfaces with.
pub(crate) fn any_socket() -> Result<OwnedFd, RequestError> {
    socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|errno| RequestError::io("open a socket", errno))
}
