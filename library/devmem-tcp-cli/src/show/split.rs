// SPDX-License-Identifier: MIT OR Apache-2.0

//! What drivers call their counters of packets that were split, or not.

use std::collections::BTreeMap;

/// Drivers, and the names that `ethtool -S` gives their counters over all queues. bnxt and fbnic count
/// neither (as of Linux 7.3).
const NAMES: [(&str, &[&str]); 3] = [
    // drivers/net/ethernet/mellanox/mlx5/core/en_stats.c
    (
        "mlx5_core",
        &[
            "rx_gro_large_hds",
            "rx_hds_nodata_packets",
            "rx_hds_nodata_bytes",
            "rx_hds_nosplit_packets",
            "rx_hds_nosplit_bytes",
        ],
    ),
    // drivers/net/ethernet/google/gve/gve_ethtool.c
    ("gve", &["rx_hsplit_pkt", "rx_hsplit_unsplit_pkt"]),
    // nobounce's driver of the Intel 82576
    ("rigb", &["rx_split", "rx_unsplit_dropped"]),
];

/// Those among a driver's statistics.
pub(super) fn counters(statistics: Vec<(String, u64)>) -> BTreeMap<String, u64> {
    let known = |name: &str| NAMES.iter().any(|(_, names)| names.contains(&name));
    statistics
        .into_iter()
        .filter(|(name, _)| known(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_split_is_found_among_other_counters() {
        let statistics = ["rx_packets", "rx_hsplit_pkt", "rx_hsplit_bytes[0]"];
        let statistics = statistics.map(|name| (name.to_owned(), 7));
        assert_eq!(
            counters(statistics.into()),
            [("rx_hsplit_pkt".to_owned(), 7)].into()
        );
    }
}
