// SPDX-License-Identifier: MIT OR Apache-2.0

//! What facts mean for steering a flow to a queue of its own.

use devmem_tcp::ethtool::Flow;

use super::facts::Facts;
use super::finding::{Finding, State, Way};
use super::findings::{RECEIVING, finding};
use crate::asked::Asked;

pub(super) fn findings(facts: &Facts) -> [Finding; 5] {
    [
        rx_queues(facts),
        rss(facts),
        flow_rules(facts),
        free_queue(facts),
        hash_fields(facts),
    ]
}

fn rx_queues(facts: &Facts) -> Finding {
    let name = &facts.interface;
    let most = facts.channels.known().map(|c| c.combined_max);
    let (found, state) = match (facts.rx_queues(), most) {
        (None, _) => ("unknown".to_owned(), unanswered(&facts.rx_queues)),
        (Some(1), Some(most @ 2..)) => (
            "1".to_owned(),
            State::Fix(format!("ethtool -L {name} combined {most}")),
        ),
        (Some(count @ ..=1), _) => (
            count.to_string(),
            State::Lacks("a second one, for the steered flow alone".to_owned()),
        ),
        (Some(count), _) => (count.to_string(), State::Good),
    };
    let by = format!("ethtool -l {name}");
    finding("RX queues", found, by, state, RECEIVING)
}

fn unanswered<T>(asked: &Asked<T>) -> State {
    State::Unknown(asked.reason().unwrap_or("the interface is down").to_owned())
}

/// Whether there is a table that says where hashed flows go.
fn has_table(facts: &Facts) -> bool {
    let rss = facts.rss.known();
    rss.is_some_and(|rss| !rss.indirection.is_empty())
}

fn rss(facts: &Facts) -> Finding {
    let found = match &facts.rss {
        Asked::Known(rss) if !rss.indirection.is_empty() => {
            let mut queues = rss.indirection.clone();
            queues.sort_unstable();
            queues.dedup();
            let queues: Vec<_> = queues.iter().map(u32::to_string).collect();
            format!(
                "{} entries, to queue {}",
                rss.indirection.len(),
                queues.join(", ")
            )
        }
        Asked::Known(_) => "no table".to_owned(),
        none => format!("no table: {}", none.reason().unwrap_or_default()),
    };
    let by = format!("ethtool -x {}", facts.interface);
    finding("RSS table", found, by, State::Note, RECEIVING)
}

fn flow_rules(facts: &Facts) -> Finding {
    let name = &facts.interface;
    let features = facts.features.known();
    let on = features.is_some_and(|f| f.active.contains("rx-ntuple-filter"));
    let can = features.is_some_and(|f| f.has("rx-ntuple-filter"));
    let rules = facts.rules.known().filter(|rules| rules.places > 0);
    let found = match rules {
        Some(rules) => format!("{} of {} possible", rules.queues.len(), rules.places),
        None => "none possible".to_owned(),
    };
    let (found, state) = match (on, can) {
        (true, _) => (found, State::Good),
        (false, true) if has_table(facts) => {
            (format!("off (ethtool -K {name} ntuple on)"), State::Note)
        }
        (false, true) => (
            "off".to_owned(),
            State::Fix(format!("ethtool -K {name} ntuple on")),
        ),
        (false, false) if has_table(facts) => {
            ("none; the RSS table can steer".to_owned(), State::Note)
        }
        (false, false) if matches!(facts.rss, Asked::Unknown { .. }) => {
            ("none".to_owned(), unanswered(&facts.rss))
        }
        (false, false) => (
            "none".to_owned(),
            State::Lacks("neither rules nor an RSS table to steer with".to_owned()),
        ),
    };
    let by = format!("ethtool -n {name}");
    finding("flow rules", found, by, state, RECEIVING)
}

fn free_queue(facts: &Facts) -> Finding {
    let name = &facts.interface;
    let count = facts.rx_queues();
    let (found, state) = match (facts.free_queue(), count) {
        _ if facts.named.is_some() => ("one was named".to_owned(), State::Good),
        (Some(queue), _) => (format!("{queue}"), State::Good),
        // The finding about the number of queues says it.
        (None, None | Some(..=1)) => ("none".to_owned(), State::Note),
        // The finding about the link says it.
        (None, _) if facts.rx_queues.known().is_some_and(Vec::is_empty) => {
            ("none while it is down".to_owned(), State::Note)
        }
        (None, _) if facts.rules.known().is_some_and(|rules| rules.others > 0) => (
            "unknown".to_owned(),
            State::Unknown("there are flow rules of other kinds".to_owned()),
        ),
        (None, Some(count)) if has_table(facts) => (
            "none".to_owned(),
            State::Fix(format!("ethtool -X {name} equal {}", count - 1)),
        ),
        (None, Some(_)) => (
            "unknown".to_owned(),
            State::Unknown("without an RSS table hashed flows may go anywhere".to_owned()),
        ),
    };
    let by = format!("ethtool -x {name}");
    finding("queue without flows", found, by, state, RECEIVING)
}

fn hash_fields(facts: &Facts) -> Finding {
    let fields = facts.rss.known().map(|rss| &rss.hash_fields);
    let found = match fields.and_then(|fields| fields.get(&Flow::Tcp4)) {
        Some(fields) if fields.l4_src && fields.l4_dst => "TCP by addresses and ports",
        Some(fields) if fields.ip_src || fields.ip_dst => "TCP by addresses",
        Some(_) => "TCP is not hashed",
        None => "the driver doesn't say",
    };
    let by = format!("ethtool -n {} rx-flow-hash tcp4", facts.interface);
    finding("rx-flow-hash", found, by, State::Note, &[Way::Rx])
}
