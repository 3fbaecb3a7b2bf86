// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which operations the running kernel's generic netlink families have: a kernel that is too old for
//! something is told from a driver that lacks it.

use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::{Netlink, Subject};

/// Commands of include/uapi/linux/netdev.h and their names in the specification.
const NETDEV: [(u32, &str); 10] = [
    (1, "dev-get"),
    (5, "page-pool-get"),
    (9, "page-pool-stats-get"),
    (10, "queue-get"),
    (11, "napi-get"),
    (12, "qstats-get"),
    (13, "bind-rx"),
    (14, "napi-set"),
    (15, "bind-tx"),
    (16, "queue-create"),
];

/// Commands of include/uapi/linux/ethtool_netlink_generated.h that device memory has to do with.
const ETHTOOL: [(u32, &str); 6] = [
    (15, "rings-get"),
    (16, "rings-set"),
    (38, "rss-get"),
    (48, "rss-set"),
    (49, "rss-create-act"),
    (50, "rss-delete-act"),
];

/// The operations of the family `netdev` that the running kernel has, of those that this crate knows,
/// as the specification names them: `bind-rx`.
///
/// # Errors
///
/// [`RequestError::KernelTooOld`] if it has no such family.
pub fn netdev() -> Result<Vec<&'static str>, RequestError> {
    of(b"netdev", "netdev getfamily", &NETDEV)
}

/// The operations of the family `ethtool` that the running kernel has, of those that device memory has
/// to do with, as the specification names them: `rings-set`.
///
/// # Errors
///
/// [`RequestError::KernelTooOld`] if it has no such family.
pub fn ethtool() -> Result<Vec<&'static str>, RequestError> {
    of(b"ethtool", "ethtool getfamily", &ETHTOOL)
}

fn of(
    family: &[u8],
    operation: &'static str,
    names: &[(u32, &'static str)],
) -> Result<Vec<&'static str>, RequestError> {
    let subject = Subject {
        operation,
        interface: Interface::NONE,
    };
    let numbers = Netlink::default().operations(subject, family)?;
    let known = names.iter().filter(|(number, _)| numbers.contains(number));
    Ok(known.map(|&(_, name)| name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_a_family_has_its_oldest_operation() {
        for (operations, oldest) in [(netdev(), "dev-get"), (ethtool(), "rings-get")] {
            match operations {
                Ok(operations) => assert!(operations.contains(&oldest), "{operations:?}"),
                Err(error) => assert!(matches!(error, RequestError::KernelTooOld { .. })),
            }
        }
    }
}
