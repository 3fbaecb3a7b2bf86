// SPDX-License-Identifier: MIT OR Apache-2.0

//! Network terms that requests and replies share.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Serialize};

/// One of the guest's two network namespaces.
///
/// The NIC under test lives in `Local`, the NIC at the other end of its wire in `Peer`, so that
/// traffic between them crosses the wire and not the loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ns {
    /// The initial namespace; every device appears here first.
    Local,
    /// The peer's namespace, made by the agent at boot.
    Peer,
}

impl Ns {
    /// Where the other end of the wire is.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Local => Self::Peer,
            Self::Peer => Self::Local,
        }
    }
}

/// An address with the length of its network's prefix, written `192.0.2.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// The address of the interface.
    pub address: IpAddr,
    /// Bits of the network part: at most 32 or 128.
    pub length: u8,
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The text is not `address/length`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not an address with a prefix length, like 192.0.2.1/24 or 2001:db8::1/64")]
pub struct PrefixError(String);

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || PrefixError(text.to_owned());
        let (address, length) = text.split_once('/').ok_or_else(error)?;
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let length: u8 = length.parse().map_err(|_| error())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if length > most {
            return Err(error());
        }
        Ok(Self { address, length })
    }
}

/// An Ethernet address, written `52:54:00:00:00:01`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What names an interface: a request about it, or a namespace and a name.
pub trait OnInterface {
    /// Which namespace.
    fn ns(&self) -> Ns;
    /// Interface name.
    fn interface(&self) -> &str;
}

impl<N: AsRef<str>> OnInterface for (Ns, N) {
    fn ns(&self) -> Ns {
        self.0
    }

    fn interface(&self) -> &str {
        self.1.as_ref()
    }
}

/// Defines requests about an interface.
macro_rules! interface_requests {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* },)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Serialize, Deserialize)]
            pub struct $name {
                /// Which namespace.
                pub ns: Ns,
                /// Interface name.
                pub interface: String,
                $($(#[$field_doc])* pub $field: $kind,)*
            }

            impl $name {
                /// This request, about an interface.
                pub fn on(at: impl $crate::net::OnInterface, $($field: $kind),*) -> Self {
                    Self {
                        ns: at.ns(),
                        interface: at.interface().to_owned(),
                        $($field,)*
                    }
                }
            }

            impl $crate::net::OnInterface for $name {
                fn ns(&self) -> Ns {
                    self.ns
                }

                fn interface(&self) -> &str {
                    &self.interface
                }
            }
        )*
    };
}

pub(crate) use interface_requests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_read_as_it_is_written() {
        for text in ["192.0.2.1/24", "2001:db8::1/64", "10.0.0.1/32", "::1/128"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_prefix_is_named_in_the_error() {
        for text in ["192.0.2.1", "192.0.2.1/33", "2001:db8::1/129", "x/8", ""] {
            let error = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(error.contains(&format!("\"{text}\"")), "{error}");
        }
    }
}
