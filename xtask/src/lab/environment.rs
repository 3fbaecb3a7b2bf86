// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a program in the lab is told of it.

use std::collections::BTreeMap;
use std::env;
use std::sync::Once;

use anyhow::{Context, Result};
use cases::{Family, Station};
use protocol::link::ListInterfaces;

use super::guests::Lab;
use super::setup::{ACCELERATOR, PEER, QUEUE, Setup};
use crate::ui;

/// Where `ip`, `ethtool` and the like are, which need not be in a user's PATH.
const SYSTEM: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The user's environment.
pub(super) fn of_user() -> BTreeMap<String, String> {
    let (mut variables, mut others) = (BTreeMap::new(), Vec::new());
    for (name, value) in env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            variables.insert(name.to_owned(), value.to_owned());
        } else {
            others.push(name.to_string_lossy().into_owned());
        }
    }
    if !others.is_empty() {
        // The channel has strings of UTF-8. Scripts of ours have the same environment.
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            let names = others.join(", ");
            ui::note(&format!(
                "not in the guest's environment, as it isn't UTF-8: {names}"
            ));
        });
    }
    let path = variables.remove("PATH").unwrap_or_default();
    variables.insert("PATH".to_owned(), with_system_folders(&path));
    variables
}

/// What the lab adds to it.
pub(super) fn add_lab(
    variables: &mut BTreeMap<String, String>,
    setup: &Setup,
    lab: &Lab,
) -> Result<()> {
    let bed = &lab.bed;
    let mut add = |name: &str, value: String| {
        variables.insert(format!("NOBOUNCE_{name}"), value);
    };
    add("LOGS", bed.guest.directory().display().to_string());
    add("PEER_NETNS", PEER.to_owned());
    if setup.bare {
        return Ok(());
    }
    let stations = [
        ("", bed.local),
        ("PEER_", bed.peer),
        ("CONTROL_", Station::CONTROL),
        ("CONTROL_PEER_", Station::CONTROL_PEER),
    ];
    for (prefix, station) in stations {
        add(&format!("{prefix}NIC"), station.name());
        let address = |family| station.address(family).to_string();
        add(&format!("{prefix}ADDRESS"), address(Family::V4));
        add(&format!("{prefix}ADDRESS6"), address(Family::V6));
    }
    let interfaces = bed.guest.call(ListInterfaces { ns: bed.local.ns })?;
    let name = bed.local.name();
    let interface = interfaces
        .iter()
        .find(|interface| interface.name == name)
        .with_context(|| format!("the guest has no interface {name}"))?;
    add("IFINDEX", interface.index.to_string());
    add("QUEUE", QUEUE.to_string());
    add("ACCELERATOR", ACCELERATOR.to_owned());
    Ok(())
}

/// The lab in one line.
pub(super) fn summary(name: &str, setup: &Setup, lab: &Lab) -> String {
    let bed = &lab.bed;
    let logs = bed.guest.directory().display();
    if setup.bare {
        return format!("{name}: the NICs have no driver; logs in {logs}");
    }
    format!(
        "{name}: {} {} <-> {} {} in netns {PEER}{}, MTU {}, header split, {} to queue {QUEUE}; \
         control {} <-> {}; accelerator {ACCELERATOR}; logs in {logs}",
        bed.local.name(),
        bed.local.address(Family::V4),
        bed.peer.name(),
        bed.peer.address(Family::V4),
        lab.peer.as_ref().map_or("", |_| " of another guest"),
        bed.mtu(),
        steered(&setup.port),
        Station::CONTROL.address(Family::V4),
        Station::CONTROL_PEER.address(Family::V4),
    )
}

/// What comes to the queue that may be bound.
fn steered(ports: &[u16]) -> String {
    if ports.is_empty() {
        return "all TCP".to_owned();
    }
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("TCP to port {}", ports.join(" and "))
}

/// A PATH that has the system's folders, too, after those that the user wants searched.
fn with_system_folders(path: &str) -> String {
    let mut folders: Vec<&str> = path
        .split(':')
        .filter(|folder| !folder.is_empty())
        .collect();
    for folder in SYSTEM {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_folders_come_last_and_once() {
        assert_eq!(
            with_system_folders("/home/me/bin:/usr/sbin:/usr/bin"),
            "/home/me/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/sbin"
        );
        assert_eq!(with_system_folders(""), "/usr/local/sbin:/usr/sbin:/sbin");
    }
}
