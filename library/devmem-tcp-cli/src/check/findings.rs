// SPDX-License-Identifier: MIT OR Apache-2.0

//! What facts mean.

use devmem_tcp::ethtool::TcpDataSplit;

use super::facts::{Attempt, Facts};
use super::finding::{Finding, State, Way};
use super::steering;
use crate::asked::Asked;

/// Ways that need what a NIC does when it receives.
pub(super) const RECEIVING: &[Way] = &[Way::Rx, Way::Zcrx];
const DEVMEM: &[Way] = &[Way::Rx, Way::Tx];
const NOTHING: &[Way] = &[];

/// Everything that is to be said.
pub(super) fn of(facts: &Facts) -> Vec<Finding> {
    let mut all = vec![
        kernel(facts),
        operation(facts, "bind-rx", Way::Rx, "Linux 6.12 or newer"),
        operation(facts, "bind-tx", Way::Tx, "Linux 6.16 or newer"),
        configuration(facts),
        link(facts),
        mtu(facts),
        header_split(facts),
        hds_thresh(facts),
        xdp(facts),
        queue_management(facts),
        page_sizes(facts),
    ];
    all.extend(steering::findings(facts));
    all.extend([
        netmem_tx(facts),
        offloads(facts),
        io_uring(facts),
        zcrx(facts),
        no_device(facts),
        dma_bufs(facts),
        privilege(facts),
        user_namespace(facts),
        locked_memory(facts),
        optmem(facts),
    ]);
    all
}

pub(super) fn finding(
    what: &'static str,
    found: impl ToString,
    shown_by: impl ToString,
    state: State,
    ways: &[Way],
) -> Finding {
    Finding {
        what,
        found: found.to_string(),
        shown_by: shown_by.to_string(),
        state,
        ways: ways.to_vec(),
    }
}

/// The command for what no other one shows: what the kernel answers to this one.
fn by_asking(facts: &Facts) -> String {
    format!("devmem-tcp check {}", facts.interface)
}

/// The same for what takes a queue.
fn by_trying(facts: &Facts) -> String {
    let queue = facts.named.map(|queue| format!("={queue}"));
    by_asking(facts) + " --try" + &queue.unwrap_or_default()
}

/// What it means that there is no answer.
pub(super) fn no_answer<T>(asked: &Asked<T>) -> State {
    match asked {
        Asked::Known(_) => State::Good,
        Asked::Lacks { lacks } => State::Lacks(lacks.clone()),
        Asked::Unknown { unknown } => State::Unknown(unknown.clone()),
    }
}

fn kernel(facts: &Facts) -> Finding {
    let by = "uname -r";
    finding("kernel", &facts.release, by, State::Note, NOTHING)
}

fn operation(facts: &Facts, name: &'static str, way: Way, since: &str) -> Finding {
    let (found, state) = match &facts.netdev {
        Asked::Known(names) if names.contains(&name) => ("the kernel has it", State::Good),
        Asked::Known(_) => ("no", State::Lacks(format!("it takes {since}"))),
        none => ("no", no_answer(none)),
    };
    finding(name, found, "genl ctrl get name netdev", state, &[way])
}

fn configuration(facts: &Facts) -> Finding {
    let (found, state) = match facts.net_devmem {
        Some(true) => ("CONFIG_NET_DEVMEM=y", State::Good),
        Some(false) => (
            "CONFIG_NET_DEVMEM is not set",
            State::Lacks("CONFIG_NET_DEVMEM".to_owned()),
        ),
        None => ("it can't be read; a binding shows it", State::Note),
    };
    let file = facts.configuration.as_deref().unwrap_or("/proc/config.gz");
    let by = format!("zgrep NET_DEVMEM {file}");
    finding("configuration", found, by, state, DEVMEM)
}

fn link(facts: &Facts) -> Finding {
    let name = &facts.interface;
    let (found, state) = match &facts.link {
        Asked::Known(link) if link.carrier => ("up", State::Good),
        Asked::Known(link) if link.up => {
            let cable = "a carrier: a cable, or a peer that is up".to_owned();
            ("up, no carrier", State::Fix(cable))
        }
        Asked::Known(_) => ("down", State::Fix(format!("ip link set {name} up"))),
        none => ("unknown", no_answer(none)),
    };
    let ways = [Way::Rx, Way::Tx, Way::Zcrx, Way::Ordinary];
    finding("link", found, format!("ip link show {name}"), state, &ways)
}

/// Headers of a segment over IPv4, with timestamps.
const HEADERS: u32 = 20 + 20 + 12;

fn mtu(facts: &Facts) -> Finding {
    let found = match facts.link.known().map(|link| link.mtu) {
        None => "unknown".to_owned(),
        Some(mtu) => {
            let payload = mtu.saturating_sub(HEADERS);
            let rest = match payload % 4096 {
                0 => String::new(),
                _ if payload < 4096 => format!("; {} fills a page", 4096 + HEADERS),
                _ => format!("; {} fills pages", payload / 4096 * 4096 + HEADERS),
            };
            let pages = match payload.div_ceil(4096) {
                1 => "1 page".to_owned(),
                pages => format!("{pages} pages"),
            };
            format!("{mtu}: {payload} bytes of payload in {pages}{rest}")
        }
    };
    let by = format!("ip link show {}", facts.interface);
    finding("MTU", found, by, State::Note, NOTHING)
}

fn header_split(facts: &Facts) -> Finding {
    let name = &facts.interface;
    let on = State::Fix(format!("ethtool -G {name} tcp-data-split on"));
    let (found, state) = match &facts.rings {
        Asked::Known(rings) => match (rings.tcp_data_split, rings.hds_thresh) {
            (Some(TcpDataSplit::On), _) => ("on", State::Good),
            (Some(TcpDataSplit::Off), _) => ("off", on),
            // A driver that has a threshold splits (ETHTOOL_RING_USE_HDS_THRS).
            (_, Some(_)) => ("not set", on),
            (_, None) => (
                "no",
                State::Lacks("the driver knows no tcp-data-split".to_owned()),
            ),
        },
        none => ("no", no_answer(none)),
    };
    let by = format!("ethtool -g {name}");
    finding("header split", found, by, state, RECEIVING)
}

fn hds_thresh(facts: &Facts) -> Finding {
    let name = &facts.interface;
    let thresh = facts.rings.known().and_then(|rings| rings.hds_thresh);
    let (found, state) = match thresh {
        Some(0) => ("0".to_owned(), State::Good),
        Some(bytes) => (
            bytes.to_string(),
            State::Fix(format!("ethtool -G {name} hds-thresh 0")),
        ),
        None => ("the driver has none".to_owned(), State::Good),
    };
    let by = format!("ethtool -g {name}");
    finding("hds-thresh", found, by, state, RECEIVING)
}

fn xdp(facts: &Facts) -> Finding {
    let name = &facts.interface;
    let (found, state) = match &facts.link {
        Asked::Known(link) if link.xdp => (
            "attached",
            State::Fix(format!("ip link set {name} xdp off")),
        ),
        Asked::Known(_) => ("none", State::Good),
        none => ("unknown", no_answer(none)),
    };
    let by = format!("ip link show {name}");
    finding("XDP program", found, by, state, RECEIVING)
}

fn queue_management(facts: &Facts) -> Finding {
    let (found, state) = match &facts.attempts.bind_rx {
        Attempt::NotNow(_) => ("the driver has it".to_owned(), State::Good),
        attempt => meaning(attempt),
    };
    let by = by_trying(facts);
    finding("queue management", found, by, state, RECEIVING)
}

fn page_sizes(facts: &Facts) -> Finding {
    let found = match &facts.attempts.page_sizes {
        Asked::Known(sizes) if sizes.is_empty() => "only a page".to_owned(),
        Asked::Known(sizes) => {
            let sizes: Vec<_> = sizes
                .iter()
                .map(|size| format!("{} KiB", size >> 10))
                .collect();
            format!("a page, {}", sizes.join(", "))
        }
        none => format!("unknown: {}", none.reason().unwrap_or_default()),
    };
    let by = by_trying(facts);
    finding("rx-page-size", found, by, State::Note, NOTHING)
}

fn netmem_tx(facts: &Facts) -> Finding {
    let (found, state) = meaning(&facts.attempts.bind_tx);
    let by = by_asking(facts);
    finding("netmem TX", found, by, state, &[Way::Tx])
}

fn offloads(facts: &Facts) -> Finding {
    let name = &facts.interface;
    let (found, state) = match &facts.features {
        Asked::Known(features) => {
            let on = |feature: &str| features.active.contains(feature);
            let sums = [
                "tx-checksum-ip-generic",
                "tx-checksum-ipv4",
                "tx-checksum-ipv6",
            ];
            match (on("tx-scatter-gather"), sums.iter().any(|sum| on(sum))) {
                (true, true) => ("on", State::Good),
                _ if features.has("tx-scatter-gather") && sums.iter().any(|s| features.has(s)) => {
                    ("off", State::Fix(format!("ethtool -K {name} tx on sg on")))
                }
                _ => ("no", State::Lacks("the device can't both".to_owned())),
            }
        }
        none => ("unknown", no_answer(none)),
    };
    let by = format!("ethtool -k {name}");
    finding("sg, TX checksums", found, by, state, &[Way::Tx])
}

fn io_uring(facts: &Facts) -> Finding {
    let (found, state) = match &facts.zcrx {
        Asked::Known(None) => (
            "no".to_owned(),
            State::Lacks("it takes Linux 6.15 or newer with CONFIG_IO_URING_ZCRX".to_owned()),
        ),
        Asked::Known(Some(features)) => {
            let has = [
                ("rx-buf-len", features.rx_buf_len),
                ("notifications", features.events),
                ("no device", features.no_device),
                ("more areas", features.add_area),
            ];
            let has: Vec<_> = has
                .iter()
                .filter(|(_, has)| *has)
                .map(|(n, _)| *n)
                .collect();
            let found = match has.is_empty() {
                true => "the kernel has it, and nothing beyond".to_owned(),
                false => format!("the kernel has it, and: {}", has.join(", ")),
            };
            (found, State::Good)
        }
        none => ("unknown".to_owned(), no_answer(none)),
    };
    let ways = [Way::Zcrx, Way::Nodev];
    finding("zcrx", found, by_asking(facts), state, &ways)
}

fn zcrx(facts: &Facts) -> Finding {
    let (found, state) = match &facts.attempts.zcrx {
        Attempt::NotNow(_) => ("the driver has it".to_owned(), State::Good),
        attempt => meaning(attempt),
    };
    let by = by_trying(facts);
    finding("zcrx queue", found, by, state, &[Way::Zcrx])
}

fn no_device(facts: &Facts) -> Finding {
    let offered = facts.zcrx.known().copied().flatten();
    let (found, state) = match offered {
        Some(features) if !features.no_device => (
            "no".to_owned(),
            State::Lacks("it takes Linux 7.1 or newer".to_owned()),
        ),
        Some(_) if facts.caller.may_register() => meaning(&facts.attempts.no_device),
        // The findings about io_uring and about the caller say it.
        _ => ("not tried".to_owned(), State::Note),
    };
    let by = by_asking(facts);
    finding("ZCRX_REG_NODEV", found, by, state, &[Way::Nodev])
}

fn dma_bufs(facts: &Facts) -> Finding {
    let mut found = match &facts.udmabuf {
        Asked::Known(Some(limit)) => format!("udmabuf, of up to {limit} MiB"),
        Asked::Known(None) => "udmabuf".to_owned(),
        none => format!("no udmabuf ({})", none.reason().unwrap_or_default()),
    };
    found += &match facts.heaps.is_empty() {
        true => ", no heaps".to_owned(),
        false => format!(", heaps {}", facts.heaps.join(", ")),
    };
    let by = "ls /dev/udmabuf /dev/dma_heap";
    finding("dma-bufs", found, by, State::Note, NOTHING)
}

fn privilege(facts: &Facts) -> Finding {
    let (found, state) = match facts.caller.net_admin {
        true => ("yes", State::Good),
        false => ("no", State::Fix("sudo, for CAP_NET_ADMIN".to_owned())),
    };
    let by = "grep CapEff /proc/self/status";
    let ways = [Way::Rx, Way::Zcrx, Way::Nodev];
    finding("CAP_NET_ADMIN", found, by, state, &ways)
}

fn user_namespace(facts: &Facts) -> Finding {
    let (found, state) = match facts.caller.initial_namespace {
        true => ("the initial one", State::Good),
        false => (
            "not the initial one",
            State::Fix("leaving the user namespace".to_owned()),
        ),
    };
    let ways = [Way::Zcrx, Way::Nodev];
    finding(
        "user namespace",
        found,
        "cat /proc/self/uid_map",
        state,
        &ways,
    )
}

/// With less, no useful area can be locked.
const LITTLE: u64 = 1 << 20;

fn locked_memory(facts: &Facts) -> Finding {
    let (found, state) = match facts.caller.memlock {
        _ if facts.caller.ipc_lock => ("any (CAP_IPC_LOCK)".to_owned(), State::Good),
        None => ("any".to_owned(), State::Good),
        Some(limit) if limit < LITTLE => (
            format!("{} KiB", limit >> 10),
            State::Fix("ulimit -l unlimited".to_owned()),
        ),
        Some(limit) => (format!("{} MiB", limit >> 20), State::Good),
    };
    let ways = [Way::Zcrx, Way::Nodev];
    finding("locked memory", found, "ulimit -l", state, &ways)
}

fn optmem(facts: &Facts) -> Finding {
    let found = match facts.optmem_max {
        Some(bytes) => format!("{bytes} bytes for sends whose completion is not read"),
        None => "unknown".to_owned(),
    };
    let by = "sysctl net.core.optmem_max";
    finding("optmem_max", found, by, State::Note, NOTHING)
}

/// What an attempt says.
fn meaning(attempt: &Attempt) -> (String, State) {
    match attempt {
        Attempt::Works(with) => (with.clone(), State::Good),
        Attempt::Lacks(what) => ("no".to_owned(), State::Lacks(what.clone())),
        Attempt::NotNow(why) | Attempt::Unknown(why) => {
            ("unknown".to_owned(), State::Unknown(why.clone()))
        }
    }
}
