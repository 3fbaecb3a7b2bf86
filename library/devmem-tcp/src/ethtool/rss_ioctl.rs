// SPDX-License-Identifier: MIT OR Apache-2.0

//! The indirection table by the ioctl (`ETHTOOL_GRSSH`, `ETHTOOL_SRSSH`), for kernels before 6.17, whose netlink only
//! shows it.

use super::ioctl::Device;
use super::rss::Indirection;
use crate::bytes::u32_at;
use crate::error::RequestError;
use crate::interface::Interface;

const ETHTOOL_GRSSH: u32 = 0x46;
const ETHTOOL_SRSSH: u32 = 0x47;
/// `RXH_XFRM_NO_CHANGE`.
const NO_CHANGE: u8 = 0xff;
/// `struct ethtool_rxfh`, its table not included: words, and where in bytes its length is.
const HEAD: usize = 6;
const TABLE_LEN: usize = 8;

/// Sets the table of the default context.
pub(super) fn set_table(interface: Interface, to: &Indirection) -> Result<(), RequestError> {
    let device = Device::new(interface, "an indirection table")?;
    let mut head = [0; HEAD];
    head[0] = ETHTOOL_GRSSH;
    let len = u32_at(&device.call(&head, 0)?, TABLE_LEN).unwrap_or(0);
    let table = match to {
        Indirection::Queues(queues) => {
            filled(queues, len as usize).ok_or_else(|| device.refused(libc::EINVAL))?
        }
        Indirection::Default => Vec::new(),
    };
    device.call(&command(&table), 0).map(drop)
}

/// `queues` in turn until the device's table is full, as the kernel does it for netlink.
fn filled(queues: &[u32], len: usize) -> Option<Vec<u32>> {
    let fits = len > 0 && !queues.is_empty() && len % queues.len() == 0;
    fits.then(|| queues.iter().copied().cycle().take(len).collect())
}

/// The command that sets this table, or the default one if it is empty, and nothing else.
fn command(table: &[u32]) -> Vec<u32> {
    // A hash function of 0 and a key of no length are no changes.
    let functions = u32::from_ne_bytes([0, NO_CHANGE, 0, 0]);
    let head = [ETHTOOL_SRSSH, 0, table.len() as u32, 0, functions, 0];
    [&head, table].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_laid_out_as_the_kernel_has_it_and_changes_nothing_else() {
        let bytes: Vec<u8> = command(&[1, 2])
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let words = |at: usize| u32_at(&bytes, at);
        assert_eq!(
            [0, 4, 8, 12, 20, 24, 28].map(words),
            [0x47, 0, 2, 0, 0, 1, 2].map(Some)
        );
        assert_eq!(bytes[16..20], [0, 0xff, 0, 0]);
        assert_eq!(u32_at(&bytes, 32), None);
        assert_eq!(command(&[])[2], 0, "the default one");
    }

    #[test]
    fn queues_are_repeated_until_the_table_is_full_and_no_further() {
        assert_eq!(filled(&[3, 1], 4), Some(vec![3, 1, 3, 1]));
        assert_eq!(filled(&[0, 1, 2], 4), None);
        assert_eq!(filled(&[0, 1], 1), None);
        assert_eq!(filled(&[], 4), None);
        assert_eq!(filled(&[0], 0), None);
    }
}
