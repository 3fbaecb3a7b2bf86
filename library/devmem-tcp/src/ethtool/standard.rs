// SPDX-License-Identifier: MIT OR Apache-2.0

//! Statistics that mean the same for every driver (`stats-get`; `ethtool -S --groups`).

use netlink_bindings::ethtool::{IterableStats, Request, Stats, StatsGrp};

use super::{Ethtool, command, name_interface};
use crate::bytes::{u16_at, u64_at};
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

/// Groups of statistics, by the kernel's names.
const GROUPS: [&str; 5] = ["eth-phy", "eth-mac", "eth-ctrl", "rmon", "phydev"];

/// Statistics of IEEE 802.3 and RFC 2819, as far as the driver keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StandardStats {
    /// The group, the number within it (`ETHTOOL_A_STATS_*`), and the count.
    pub counters: Vec<(String, u16, u64)>,
    /// Packets received by size: from, to, and the count.
    pub rx_sizes: Vec<(u32, u32, u64)>,
    /// Packets sent by size.
    pub tx_sizes: Vec<(u32, u32, u64)>,
}

impl Ethtool {
    /// Standard statistics of an interface.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`], or what the kernel refuses.
    pub fn standard_stats(&mut self, interface: Interface) -> Result<StandardStats, RequestError> {
        let mut request = Request::new().op_stats_get_do();
        request.header_mut().cmd = command::STATS_GET;
        let mut bits = name_interface(request.encode().nested_header(), interface)
            .nested_groups()
            .nested_bits();
        for group in &GROUPS[..4] {
            bits = bits
                .nested_bit()
                .push_name_bytes(group.as_bytes())
                .push_value(())
                .end_nested();
        }
        drop(bits);
        let subject = Subject {
            operation: "ethtool stats-get",
            interface,
        };
        self.netlink
            .one(subject, &request, |reply| Ok(collect(reply)))
    }
}

fn collect(reply: IterableStats<'_>) -> StandardStats {
    let mut stats = StandardStats::default();
    // Not the generated getters: groups and their attributes repeat.
    let groups = reply.filter_map(|attribute| match attribute {
        Ok(Stats::Grp(group)) => Some(group),
        _ => None,
    });
    for group in groups {
        let Some(&name) = group.get_id().ok().and_then(|id| GROUPS.get(id as usize)) else {
            continue;
        };
        for (kind, value) in attributes(group.get_buf()) {
            if kind == STAT {
                for (id, count) in attributes(value) {
                    if let Some(count) = u64_at(count, 0) {
                        stats.counters.push((name.to_owned(), id, count));
                    }
                }
            }
        }
        for attribute in group {
            let (sizes, bucket) = match attribute {
                Ok(StatsGrp::HistRx(bucket)) => (&mut stats.rx_sizes, bucket),
                Ok(StatsGrp::HistTx(bucket)) => (&mut stats.tx_sizes, bucket),
                _ => continue,
            };
            let bounds = (bucket.get_hist_bkt_low(), bucket.get_hist_bkt_hi());
            if let ((Ok(low), Ok(high)), Ok(count)) = (bounds, bucket.get_hist_val()) {
                sizes.push((low, high, count));
            }
        }
    }
    stats
}

/// `ETHTOOL_A_STATS_GRP_STAT`: one counter, in an attribute of its own whose type is the counter's
/// number. The specification has no word for that.
const STAT: u16 = 4;

/// The attributes in `bytes`: type and value.
fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    const TYPE: u16 = 0x3fff;
    let mut found = Vec::new();
    while let (Some(len), Some(kind)) = (u16_at(bytes, 0), u16_at(bytes, 2)) {
        let len = usize::from(len);
        let Some(value) = bytes.get(4..len) else {
            break;
        };
        found.push((kind & TYPE, value));
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use netlink_bindings::utils::push_header;

    use super::*;

    #[test]
    fn counters_and_sizes_of_a_group_come_out() {
        let mut counter = Vec::new();
        push_header(&mut counter, 2, 8);
        counter.extend((7u64 << 32).to_ne_bytes());
        let mut bucket = Vec::new();
        for (kind, value) in [(7, 64u32), (8, 127)] {
            push_header(&mut bucket, kind, 4);
            bucket.extend(value.to_ne_bytes());
        }
        push_header(&mut bucket, 9, 8);
        bucket.extend(5u64.to_ne_bytes());
        let mut group = Vec::new();
        push_header(&mut group, 2, 4);
        group.extend(1u32.to_ne_bytes());
        push_header(&mut group, 4, counter.len() as u16);
        group.extend(&counter);
        push_header(&mut group, 5, bucket.len() as u16);
        group.extend(&bucket);
        let mut reply = Vec::new();
        push_header(&mut reply, 4, group.len() as u16);
        reply.extend(&group);
        assert_eq!(
            collect(Stats::new(&reply)),
            StandardStats {
                counters: vec![("eth-mac".to_owned(), 2, 7 << 32)],
                rx_sizes: vec![(64, 127, 5)],
                tx_sizes: Vec::new(),
            }
        );
    }
}
