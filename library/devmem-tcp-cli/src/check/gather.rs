// SPDX-License-Identifier: MIT OR Apache-2.0

//! Asks the kernel, the driver and this process for facts.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::process::Command;

use devmem_tcp::ethtool::{self, Ethtool, FlowAction, FlowRules};
use devmem_tcp::interface::Interface;
use devmem_tcp::netdev::{self, Netdev, QueueKind};
use devmem_tcp::{RequestError, zcrx};

use super::attempt;
use super::facts::{Attempt, Attempts, Caller, Facts, Rules, RxQueue};
use crate::asked::Asked;

/// Bits of `/proc/self/status` (include/uapi/linux/capability.h).
const CAP_NET_ADMIN: u32 = 12;
const CAP_IPC_LOCK: u32 = 14;

/// Asks all that can be asked. With `attempt` memory is bound, too: to the queue that it names, or to one that
/// nothing uses.
pub(super) fn facts(
    interface: Interface,
    attempt: Option<Option<u32>>,
) -> Result<Facts, RequestError> {
    let mut ethtool = Ethtool::new();
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let configuration = configuration_file(&release);
    let untried = || Attempt::Unknown(String::new());
    let mut facts = Facts {
        interface: interface.name()?,
        driver: Asked::from(ethtool::driver_info(interface)).map(|info| info.driver),
        netdev: netdev::operations().into(),
        ethtool: ethtool::operations().into(),
        net_devmem: configuration
            .as_deref()
            .and_then(|file| configured(file, "CONFIG_NET_DEVMEM=y")),
        configuration,
        release,
        link: interface.link().into(),
        rings: ethtool.rings(interface).into(),
        channels: ethtool.channels(interface).into(),
        rx_queues: Asked::from(Netdev::new().queues(interface)).map(|queues| {
            let queues = queues.iter().filter(|queue| queue.kind == QueueKind::Rx);
            queues.map(rx_queue).collect()
        }),
        named: attempt.flatten(),
        rss: ethtool.rss(interface).into(),
        rules: Asked::from(ethtool::flow_rules(interface)).map(|rules| rules_of(&rules)),
        features: ethtool.features(interface).into(),
        zcrx: zcrx::Features::of_kernel().into(),
        udmabuf: udmabuf(),
        heaps: heaps(),
        caller: caller(),
        optmem_max: read("/proc/sys/net/core/optmem_max").and_then(|text| text.parse().ok()),
        attempts: Attempts {
            bind_rx: untried(),
            page_sizes: Asked::unknown(""),
            bind_tx: untried(),
            zcrx: untried(),
            no_device: untried(),
        },
    };
    let queue = match (attempt, facts.free_queue()) {
        (None, _) => Err("--try shows it".to_owned()),
        (Some(None), None) => {
            Err("no queue is known to be unused; --try=QUEUE names one".to_owned())
        }
        (Some(Some(queue)), _) | (Some(None), Some(queue)) => Ok(queue),
    };
    let rx_ring = facts.rings.known().and_then(|rings| rings.rx);
    let no_device = facts.zcrx.known().copied().flatten();
    let no_device = no_device.is_some_and(|features| features.no_device);
    facts.attempts = attempt::all(interface, &queue, rx_ring.unwrap_or(1024), no_device);
    Ok(facts)
}

/// Which queues rules lead to; those to an RSS context may lead to any.
fn rules_of(all: &FlowRules) -> Rules {
    let actions = || all.rules.iter().map(|(_, rule)| rule.action);
    let contexts = actions().filter(|action| matches!(action, FlowAction::RssContext(_)));
    Rules {
        places: all.places,
        others: (all.others.len() + contexts.count()) as u32,
        queues: actions()
            .filter_map(|action| match action {
                FlowAction::Queue(queue) => Some(queue),
                _ => None,
            })
            .collect(),
    }
}

fn rx_queue(queue: &netdev::Queue) -> RxQueue {
    RxQueue {
        id: queue.id,
        taken: queue.dmabuf.is_some() || queue.io_uring || queue.xsk || queue.leased,
    }
}

fn udmabuf() -> Asked<Option<u64>> {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/udmabuf");
    match device {
        Ok(_) => {
            let limit = read("/sys/module/udmabuf/parameters/size_limit_mb");
            Asked::Known(limit.and_then(|text| text.parse().ok()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Asked::lacks("no /dev/udmabuf"),
        Err(error) => Asked::unknown(format!("/dev/udmabuf: {error}")),
    }
}

fn heaps() -> Vec<String> {
    let entries = fs::read_dir("/dev/dma_heap")
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn caller() -> Caller {
    let capabilities = field("/proc/self/status", "CapEff:")
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
        .unwrap_or_default();
    let has = |bit: u32| capabilities & 1 << bit != 0;
    let map = read("/proc/self/uid_map").unwrap_or_default();
    let limit = field("/proc/self/limits", "Max locked memory");
    Caller {
        net_admin: has(CAP_NET_ADMIN),
        ipc_lock: has(CAP_IPC_LOCK),
        initial_namespace: map.split_whitespace().eq(["0", "0", "4294967295"]),
        memlock: limit.and_then(|text| text.split_whitespace().next()?.parse().ok()),
    }
}

/// Where the configuration of a kernel is, if it is there: as distributions have it, or as the kernel shows it.
fn configuration_file(release: &str) -> Option<String> {
    let files = [
        format!("/boot/config-{release}"),
        "/proc/config.gz".to_owned(),
    ];
    files.into_iter().find(|file| fs::File::open(file).is_ok())
}

/// Whether a line is in a configuration, if that can be read.
fn configured(file: &str, line: &str) -> Option<bool> {
    let configuration = match file.ends_with(".gz") {
        false => fs::read_to_string(file).ok()?,
        true => {
            let output = Command::new("zcat").arg(file).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            output.status.success().then_some(text)?
        }
    };
    Some(configuration.lines().any(|found| found == line))
}

/// What is behind `name` in a line of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = read(path)?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    lines.next().map(str::to_owned)
}

fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned())
}
