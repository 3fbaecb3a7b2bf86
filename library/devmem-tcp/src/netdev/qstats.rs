// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queue statistics (`qstats-get`).

use std::collections::BTreeMap;

use netlink_bindings::netdev::{IterableQstats, OpQstatsGetDump, QstatsScope, Request};

use super::{QueueKind, counters};

use crate::interface::Interface;

/// Attribute types of `qstats` in include/uapi/linux/netdev.h and their names in the specification.
const COUNTERS: [(u16, &str); 27] = [
    (8, "rx-packets"),
    (9, "rx-bytes"),
    (10, "tx-packets"),
    (11, "tx-bytes"),
    (12, "rx-alloc-fail"),
    (13, "rx-hw-drops"),
    (14, "rx-hw-drop-overruns"),
    (15, "rx-csum-complete"),
    (16, "rx-csum-unnecessary"),
    (17, "rx-csum-none"),
    (18, "rx-csum-bad"),
    (19, "rx-hw-gro-packets"),
    (20, "rx-hw-gro-bytes"),
    (21, "rx-hw-gro-wire-packets"),
    (22, "rx-hw-gro-wire-bytes"),
    (23, "rx-hw-drop-ratelimits"),
    (24, "tx-hw-drops"),
    (25, "tx-hw-drop-errors"),
    (26, "tx-csum-none"),
    (27, "tx-needs-csum"),
    (28, "tx-hw-gso-packets"),
    (29, "tx-hw-gso-bytes"),
    (30, "tx-hw-gso-wire-packets"),
    (31, "tx-hw-gso-wire-bytes"),
    (32, "tx-hw-drop-ratelimits"),
    (33, "tx-stop"),
    (34, "tx-wake"),
];

/// Counters of one queue or of a whole interface. A driver reports those that it tracks; the others
/// are absent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct QueueStats {
    /// The queue; none if the counters are those of the whole interface.
    pub queue: Option<(QueueKind, u32)>,
    /// Counters by the name that the YNL specification gives them, as in `rx-packets`.
    pub counters: BTreeMap<String, u64>,
}

impl QueueStats {
    /// The counter of this name, as in `rx-hw-drops`; none if the driver does not track it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }
}

pub(super) fn request(interface: Interface, per_queue: bool) -> OpQstatsGetDump<'static> {
    let mut request = Request::new().op_qstats_get_dump();
    let attributes = request.encode().push_ifindex(interface.index());
    if per_queue {
        attributes.push_scope(QstatsScope::Queue as u32);
    } else {
        drop(attributes);
    }
    request
}

pub(super) fn decode(attributes: &IterableQstats<'_>) -> QueueStats {
    let kind = attributes
        .get_queue_type()
        .ok()
        .and_then(QueueKind::from_wire);
    QueueStats {
        queue: kind.zip(attributes.get_queue_id().ok()),
        counters: counters(attributes.get_buf(), &COUNTERS),
    }
}

#[cfg(test)]
mod tests {
    use netlink_bindings::netdev::Qstats;
    use netlink_bindings::utils::push_header;

    use super::*;

    #[test]
    fn counters_above_four_gib_come_out_whole() {
        let mut attributes = Vec::new();
        push_header(&mut attributes, 2, 4);
        attributes.extend(0u32.to_ne_bytes());
        push_header(&mut attributes, 3, 4);
        attributes.extend(5u32.to_ne_bytes());
        push_header(&mut attributes, 9, 8);
        attributes.extend((5u64 << 32).to_ne_bytes());
        let stats = decode(&Qstats::new(&attributes));
        assert_eq!(stats.queue, Some((QueueKind::Rx, 5)));
        assert_eq!(stats.get("rx-bytes"), Some(5 << 32));
        assert_eq!(
            stats.get("rx-packets"),
            None,
            "an attribute that was not sent must be absent"
        );
    }

    #[test]
    fn the_counter_table_agrees_with_the_generated_bindings() {
        for (kind, name) in COUNTERS {
            let mut attributes = Vec::new();
            push_header(&mut attributes, kind, 4);
            attributes.extend(1u32.to_ne_bytes());
            let generated = format!("{:?}", Qstats::new(&attributes)).to_lowercase();
            let expected = format!("{}: 1 ", name.replace('-', ""));
            assert!(
                generated.contains(&expected),
                "attribute {kind} is {generated} in the specification, not {expected}"
            );
        }
    }
}
