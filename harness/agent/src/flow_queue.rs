// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where a device's hash and table send a flow.

use anyhow::{Context, Result, bail};
use devmem_tcp::{ethtool::Ethtool, interface::Interface};
use i82576::rss::{Key, ipv4_tuple, ipv6_tuple, toeplitz};
use protocol::rss::{FlowPlace, FlowQueue, Rss};

/// The queue to which the device's hash and table send a flow.
pub(crate) fn find(request: &FlowQueue) -> Result<FlowPlace> {
    let Rss {
        indirection, key, ..
    } = Ethtool::new().rss(Interface::by_name(&request.interface)?)?;
    place(&indirection, &key, request)
        .with_context(|| format!("computing the queue of a flow on {}", request.interface))
}

fn place(table: &[u32], key: &[u8], flow: &FlowQueue) -> Result<FlowPlace> {
    use std::net::SocketAddr::{V4, V6};
    let key = key
        .try_into()
        .context("the hash key does not have 40 bytes")?;
    let key = Key::new(key);
    let ports = (flow.source.port(), flow.destination.port());
    let hash = match (flow.source, flow.destination) {
        (V4(source), V4(destination)) => toeplitz(
            &key,
            &ipv4_tuple(source.ip().octets(), destination.ip().octets(), ports),
        ),
        (V6(source), V6(destination)) => toeplitz(
            &key,
            &ipv6_tuple(source.ip().octets(), destination.ip().octets(), ports),
        ),
        (source, destination) => bail!("{source} and {destination} are of different families"),
    };
    // The hardware takes the hash's low bits, and tables are powers of two.
    let entry = hash
        % u32::try_from(table.len())
            .ok()
            .filter(|&len| len > 0)
            .context("no table")?;
    Ok(FlowPlace {
        hash,
        entry,
        queue: table[entry as usize],
    })
}

#[cfg(test)]
mod tests {
    use protocol::Ns;

    use super::*;

    /// Microsoft's "Verifying the RSS hash calculation".
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    fn flow(source: &str, destination: &str) -> FlowQueue {
        FlowQueue::on(
            (Ns::Local, "eth0"),
            source.parse().unwrap(),
            destination.parse().unwrap(),
        )
    }

    #[test]
    fn a_flow_goes_where_the_published_hash_points() {
        let table: Vec<u32> = (0..128).collect();
        let flow = flow("66.9.149.187:2794", "161.142.100.80:1766");
        let place = place(&table, &KEY, &flow).unwrap();
        let entry = 0x51cc_c178 % 128;
        assert_eq!(
            place,
            FlowPlace {
                hash: 0x51cc_c178,
                entry,
                queue: entry
            }
        );
    }

    #[test]
    fn a_flow_needs_a_table_a_key_and_one_family() {
        let good = flow("10.0.0.1:1", "10.0.0.2:2");
        assert!(place(&[], &KEY, &good).is_err());
        assert!(place(&[0; 128], &KEY[1..], &good).is_err());
        let mixed = flow("10.0.0.1:1", "[::1]:2");
        assert!(place(&[0; 128], &KEY, &mixed).is_err());
    }
}
