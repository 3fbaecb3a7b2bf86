// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is shown, as text.

use std::fmt::{Display, Write};

use super::state::{Counters, HeaderSplit, Kind, Pool, Queue, Shown, State};
use crate::asked::Asked;
use crate::table::{table, wrap};

/// Columns that lines of text have at most.
const WIDTH: usize = 100;

pub(super) fn of(shown: &Shown) -> String {
    let mut parts: Vec<String> = shown.interfaces.iter().map(interface).collect();
    if let Some(pools) = shown.orphaned_page_pools.known().filter(|p| !p.is_empty()) {
        parts.push(format!(
            "page pools of interfaces that are gone:\n{}",
            pool_table(pools)
        ));
    }
    parts.join("\n")
}

fn interface(state: &State) -> String {
    let mut text = format!("{} ({})", state.interface, state.index);
    if let Some(driver) = state.driver.known() {
        let _ = write!(text, ": {}", driver.name);
        if !driver.bus.is_empty() {
            let _ = write!(text, " at {}", driver.bus);
        }
    }
    text.push('\n');
    text += &line("link", &state.link, |link| {
        let state = match (link.up, link.carrier) {
            (false, _) => "down",
            (true, false) => "up without carrier",
            (true, true) => "up",
        };
        let xdp = if link.xdp { "an" } else { "no" };
        format!("{state}, MTU {}, {xdp} XDP program", link.mtu)
    });
    text += &line("header split", &state.header_split, split);
    text += &line("split counters", &state.split_counters, |counters| {
        let counters: Vec<_> = counters.iter().map(|(k, v)| format!("{k} {v}")).collect();
        match counters.is_empty() {
            true => "the driver counts none".to_owned(),
            false => counters.join(", "),
        }
    });
    text += &line("RSS", &state.rss, |rss| {
        let queues: Vec<_> = rss.entries_by_queue.keys().map(u32::to_string).collect();
        match rss.table_entries {
            0 => "no table".to_owned(),
            entries => format!("{entries} entries, to queue {}", queues.join(", ")),
        }
    });
    text += &line("flow rules", &state.flow_rules, |rules| {
        let contexts = rules.rules_by_rss_context.iter();
        let contexts = contexts.map(|(number, to)| format!(", {to} to RSS context {number}"));
        format!(
            "{} of {} possible, {} to bound queues{}",
            rules.rules,
            rules.places,
            rules.rules_to_bound_queues,
            contexts.collect::<String>()
        )
    });
    text += &reason("queues", &state.queues);
    text += &reason("statistics", &state.statistics);
    if let Some(queues) = state.queues.known().filter(|queues| !queues.is_empty()) {
        text += &queue_table(state, queues);
    }
    text += &reason("NAPI instances", &state.napis);
    if let Some(napis) = state.napis.known().filter(|napis| !napis.is_empty()) {
        let head = ["NAPI", "IRQ", "polls in", "PID", "defer", "flush after ns"];
        let rows = napis.iter().map(|napi| {
            vec![
                napi.id.to_string(),
                or_dash(napi.irq),
                or_dash(napi.polls_in),
                or_dash(napi.pid),
                or_dash(napi.defer_hard_irqs),
                or_dash(napi.gro_flush_timeout_ns),
            ]
        });
        text += &headed(&head, rows);
    }
    text += &reason("page pools", &state.page_pools);
    if let Some(pools) = state.page_pools.known().filter(|pools| !pools.is_empty()) {
        text += &pool_table(pools);
    }
    text
}

fn split(split: &HeaderSplit) -> String {
    let state = match (split.tcp_data_split, split.hds_thresh) {
        (Some(state), _) => state,
        (None, Some(_)) => "not set",
        (None, None) => "the driver knows none",
    };
    match (split.hds_thresh, split.hds_thresh_max) {
        (Some(now), Some(most)) => format!("{state}, hds-thresh {now} (at most {most})"),
        _ => format!("{state}, no hds-thresh"),
    }
}

fn queue_table(state: &State, queues: &[Queue]) -> String {
    let mut head = vec![
        "queue",
        "NAPI",
        "memory",
        "hashed",
        "rules",
        "packets",
        "bytes",
        "drops",
        "no memory",
    ];
    if state.rates.is_some() {
        head.extend(["packets/s", "bytes/s"]);
    }
    let rows = queues.iter().map(|queue| {
        let name = match queue.kind {
            Kind::Rx => "rx",
            Kind::Tx => "tx",
        };
        let receives = |text: String| match queue.kind {
            Kind::Rx => text,
            Kind::Tx => "-".to_owned(),
        };
        let memory = match queue.leased {
            true => format!("{}, leased", queue.memory),
            false => queue.memory.to_string(),
        };
        let hashed = state.rss.known().filter(|rss| rss.table_entries > 0);
        let hashed = hashed.map(|rss| {
            let entries = rss.entries_by_queue.get(&queue.id).copied();
            format!("{}/{}", entries.unwrap_or_default(), rss.table_entries)
        });
        let rules = state.flow_rules.known();
        let rules = rules.map(|rules| rules.rules_by_queue.get(&queue.id).copied());
        let counters = find(state.statistics.known().map(Vec::as_slice), queue);
        let count = |what: &str| {
            let count = counters.and_then(|c| c.counters.get(&format!("{name}-{what}")));
            or_dash(count)
        };
        let mut row = vec![
            format!("{name} {}", queue.id),
            or_dash(queue.napi_id),
            receives(memory),
            receives(or_dash(hashed)),
            receives(or_dash(rules.map(Option::unwrap_or_default))),
            count("packets"),
            count("bytes"),
            count("hw-drops"),
            count("alloc-fail"),
        ];
        if let Some(rates) = &state.rates {
            let rates = find(Some(rates), queue);
            row.extend(["packets", "bytes"].map(|what| {
                let rate = rates.and_then(|r| r.counters.get(&format!("{name}-{what}")));
                or_dash(rate.map(|rate| rate.round() as u64))
            }));
        }
        row
    });
    headed(&head, rows)
}

fn find<'a, T>(all: Option<&'a [Counters<T>]>, queue: &Queue) -> Option<&'a Counters<T>> {
    all?.iter()
        .find(|counters| (counters.kind, counters.id) == (queue.kind, queue.id))
}

fn pool_table(pools: &[Pool]) -> String {
    let head = ["pool", "NAPI", "memory", "outstanding", "bytes", "in use"];
    let rows = pools.iter().map(|pool| {
        vec![
            pool.id.to_string(),
            or_dash(pool.napi_id),
            pool.memory.to_string(),
            or_dash(pool.outstanding),
            or_dash(pool.outstanding_bytes),
            match pool.detached_for {
                None => "yes".to_owned(),
                Some(seconds) => format!("given up {seconds} s ago"),
            },
        ]
    });
    headed(&head, rows)
}

/// A table behind an empty line, with a head.
fn headed(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head = head.iter().map(|&text| text.to_owned()).collect();
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    format!("\n{}", table(&rows, None))
}

/// What is known, or why it isn't, behind a name.
fn line<T>(name: &str, asked: &Asked<T>, known: impl FnOnce(&T) -> String) -> String {
    let text = match asked {
        Asked::Known(answer) => known(answer),
        Asked::Lacks { lacks } => format!("none: {lacks}"),
        Asked::Unknown { unknown } => format!("unknown: {unknown}"),
    };
    const NAME: usize = 16;
    let mut lines = String::new();
    for (index, part) in wrap(&text, WIDTH - NAME).into_iter().enumerate() {
        let name = if index == 0 { name } else { "" };
        let _ = writeln!(lines, "{name:NAME$}{part}");
    }
    lines
}

/// Why something isn't known.
fn reason<T>(name: &str, asked: &Asked<T>) -> String {
    match asked {
        Asked::Known(_) => String::new(),
        _ => line(name, asked, |_| String::new()),
    }
}

fn or_dash<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
