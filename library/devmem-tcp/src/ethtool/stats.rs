// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver's own statistics (`ethtool -S`): the netlink family has their names but not their
//! values, so that both come from the ioctl.

use super::ioctl::Device;
use crate::bytes::{u32_at, u64_at};
use crate::error::RequestError;
use crate::interface::Interface;

const ETHTOOL_GSTATS: u32 = 0x1d;
/// The string set of statistics.
const ETH_SS_STATS: u32 = 1;
/// How often to start over when the driver's set changes between the calls.
const ATTEMPTS: usize = 8;

/// Statistics that the driver counts for itself, by name, in the driver's order. They differ from
/// driver to driver; [`crate::netdev::Netdev::queue_stats`] has those that mean the same
/// everywhere.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver has none, [`RequestError::NoSuchInterface`].
pub fn driver_stats(interface: Interface) -> Result<Vec<(String, u64)>, RequestError> {
    let device = Device::new(interface, "driver statistics")?;
    for _ in 0..ATTEMPTS {
        let count = device.count(ETH_SS_STATS)?;
        let len = u32::try_from(count).map_err(|_| device.refused(libc::EOVERFLOW))?;
        let names = device.strings(ETH_SS_STATS, count)?;
        // struct ethtool_stats: u32 cmd, n_stats, then u64 values.
        let values = device.call(&[ETHTOOL_GSTATS, len], count * 8)?;
        if let (Some(names), Some(true)) = (names, u32_at(&values, 4).map(|now| now == len)) {
            let counts = values[8..].chunks_exact(8);
            return Ok(names
                .into_iter()
                .zip(counts)
                .map(|(name, value)| (name, u64_at(value, 0).unwrap_or(0)))
                .collect());
        }
    }
    Err(device.refused(libc::EAGAIN))
}
