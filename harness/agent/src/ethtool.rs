// SPDX-License-Identifier: MIT OR Apache-2.0

//! Device settings through the ethtool family, in the namespace of the calling thread.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use devmem::ethtool::{
    ChannelChange, Ethtool, Flow, Indirection, RingChange, RssChange, TcpDataSplit,
    driver_stats as stats,
};
use i82576::rss::{Key, ipv4_tuple, ipv6_tuple, toeplitz};
use protocol::{
    ethtool::Features,
    rings::{Channels, DataSplit, Rings, SetRings},
    rss::{FlowKind, FlowPlace, FlowQueue, HashFields, Rss, SetHashFields, SetRss},
};

use crate::rtnetlink::index_of;

/// Ring parameters.
pub(crate) fn rings(interface: &str) -> Result<Rings> {
    let rings = Ethtool::new().rings(index_of(interface)?)?;
    Ok(Rings {
        rx: rings.rx,
        rx_max: rings.rx_max,
        tx: rings.tx,
        tx_max: rings.tx_max,
        data_split: rings.tcp_data_split.map(|split| match split {
            TcpDataSplit::Auto => DataSplit::Auto,
            TcpDataSplit::Disabled => DataSplit::Off,
            TcpDataSplit::Enabled => DataSplit::On,
        }),
        hds_thresh: rings.hds_thresh,
        hds_thresh_max: rings.hds_thresh_max,
    })
}

/// Changes ring parameters.
pub(crate) fn set_rings(request: &SetRings) -> Result<()> {
    let change = RingChange {
        rx: request.rx,
        tx: request.tx,
        tcp_data_split: request.data_split.map(|split| match split {
            DataSplit::Auto => TcpDataSplit::Auto,
            DataSplit::Off => TcpDataSplit::Disabled,
            DataSplit::On => TcpDataSplit::Enabled,
        }),
        hds_thresh: request.hds_thresh,
    };
    Ok(Ethtool::new().set_rings(index_of(&request.interface)?, change)?)
}

/// Key and indirection table.
pub(crate) fn rss(interface: &str) -> Result<Rss> {
    let rss = Ethtool::new().rss(index_of(interface)?)?;
    Ok(Rss {
        table: rss.indirection,
        key: rss.key,
        hash_fields: rss
            .hash_fields
            .into_iter()
            .map(|(flow, fields)| {
                let flow = match flow {
                    Flow::Tcp4 => FlowKind::Tcp4,
                    Flow::Tcp6 => FlowKind::Tcp6,
                    Flow::Udp4 => FlowKind::Udp4,
                    Flow::Udp6 => FlowKind::Udp6,
                };
                let fields = HashFields {
                    ip_src: fields.ip_src,
                    ip_dst: fields.ip_dst,
                    l4_src: fields.l4_src,
                    l4_dst: fields.l4_dst,
                };
                (flow, fields)
            })
            .collect(),
    })
}

/// Changes key or indirection table.
pub(crate) fn set_rss(request: &SetRss) -> Result<()> {
    let change = RssChange {
        indirection: request.table.clone().map(Indirection::Queues),
        key: request.key.clone(),
        ..RssChange::default()
    };
    Ok(Ethtool::new().set_rss(index_of(&request.interface)?, &change)?)
}

/// Changes which fields are hashed.
pub(crate) fn set_hash_fields(request: &SetHashFields) -> Result<()> {
    let flow = match request.flow {
        FlowKind::Tcp4 => Flow::Tcp4,
        FlowKind::Tcp6 => Flow::Tcp6,
        FlowKind::Udp4 => Flow::Udp4,
        FlowKind::Udp6 => Flow::Udp6,
    };
    let fields = devmem::ethtool::HashFields {
        ip_src: request.fields.ip_src,
        ip_dst: request.fields.ip_dst,
        l4_src: request.fields.l4_src,
        l4_dst: request.fields.l4_dst,
    };
    let change = RssChange {
        hash_fields: Some((flow, fields)),
        ..RssChange::default()
    };
    Ok(Ethtool::new().set_rss(index_of(&request.interface)?, &change)?)
}

/// Changes the transformation of the hash input.
pub(crate) fn set_input_transformation(interface: &str, transformation: u32) -> Result<()> {
    let change = RssChange {
        input_transformation: Some(transformation),
        ..RssChange::default()
    };
    Ok(Ethtool::new().set_rss(index_of(interface)?, &change)?)
}

/// The queue to which the device's hash and table send a flow.
pub(crate) fn flow_queue(request: &FlowQueue) -> Result<FlowPlace> {
    let Rss { table, key, .. } = rss(&request.interface)?;
    place(&table, &key, request)
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

/// Channel counts.
pub(crate) fn channels(interface: &str) -> Result<Channels> {
    let channels = Ethtool::new().channels(index_of(interface)?)?;
    Ok(Channels {
        rx: channels.rx,
        tx: channels.tx,
        combined: channels.combined,
        combined_max: channels.combined_max,
    })
}

/// Changes the number of queue pairs.
pub(crate) fn set_channels(interface: &str, combined: u32) -> Result<()> {
    let change = ChannelChange {
        combined: Some(combined),
        rx: None,
        tx: None,
    };
    Ok(Ethtool::new().set_channels(index_of(interface)?, change)?)
}

/// Device features.
pub(crate) fn features(interface: &str) -> Result<Features> {
    let features = Ethtool::new().features(index_of(interface)?)?;
    Ok(Features {
        active: features.active.into_iter().collect(),
        changeable: features.changeable.into_iter().collect(),
    })
}

/// Turns features on and off.
pub(crate) fn set_features(interface: &str, features: &BTreeMap<String, bool>) -> Result<()> {
    let changes: Vec<_> = features
        .iter()
        .map(|(name, on)| (name.as_str(), *on))
        .collect();
    Ok(Ethtool::new().set_features(index_of(interface)?, &changes)?)
}

/// The driver's own statistics.
pub(crate) fn driver_stats(interface: &str) -> Result<BTreeMap<String, u64>> {
    Ok(stats(index_of(interface)?)?.into_iter().collect())
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
        FlowQueue {
            ns: Ns::Local,
            interface: "eth0".to_owned(),
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
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
