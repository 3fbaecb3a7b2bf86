// SPDX-License-Identifier: MIT OR Apache-2.0

//! The duties of an init process, before and after everything else.

use std::{fs, io, thread, time::Duration};

use anyhow::{Context, Result};
use protocol::Ns;
use rustix::{
    io::Errno,
    mount::{MountFlags, mount},
    system::{RebootCommand, reboot},
};

use crate::netns;

/// File system type, where it goes.
const MOUNTS: &[(&str, &str)] = &[
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("debugfs", "/sys/kernel/debug"),
    ("tmpfs", "/run"),
];

/// Settings of the whole guest: file below /proc/sys, value.
const GLOBAL_SYSCTLS: &[(&str, &str)] = &[
    // Large buffers: under emulation a receiver is often late, and a window that closes because
    // of that would hide what a test looks for.
    ("net/core/rmem_max", "67108864"),
    ("net/core/wmem_max", "67108864"),
    // Completions of zero-copy sends are charged to it (net/core/skbuff.c, msg_zerocopy_alloc).
    ("net/core/optmem_max", "16777216"),
];

/// Settings of each network namespace.
const NET_SYSCTLS: &[(&str, &str)] = &[
    ("net/ipv4/tcp_rmem", "4096 4194304 67108864"),
    ("net/ipv4/tcp_wmem", "4096 4194304 67108864"),
    // Allow all users to open ICMP sockets: `Ping` does.
    ("net/ipv4/ping_group_range", "0 2147483647"),
    // No duplicate address detection: addresses are usable at once.
    ("net/ipv6/conf/all/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    // The kernel removes IPv6 addresses when a link goes down, which would surprise every test
    // that takes one down.
    ("net/ipv6/conf/all/keep_addr_on_down", "1"),
    ("net/ipv6/conf/default/keep_addr_on_down", "1"),
    // There is no router on the wire: keep solicitations out of the packet log.
    ("net/ipv6/conf/all/router_solicitations", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
];

/// Mounts everything in the table, creating mount points. File systems that the kernel has already
/// mounted are fine.
pub(crate) fn mounts() -> Result<()> {
    for (kind, target) in MOUNTS {
        fs::create_dir_all(target).with_context(|| format!("creating {target}"))?;
        match mount(*kind, *target, *kind, MountFlags::empty(), None) {
            Ok(()) | Err(Errno::BUSY) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("mounting {kind} on {target}"));
            }
        }
    }
    Ok(())
}

/// Writes both sysctl tables.
pub(crate) fn sysctls() -> Result<()> {
    write_table(GLOBAL_SYSCTLS)?;
    for ns in [Ns::Local, Ns::Peer] {
        netns::within(ns, || write_table(NET_SYSCTLS))?;
    }
    Ok(())
}

fn write_table(table: &[(&str, &str)]) -> Result<()> {
    for (name, value) in table {
        let path = format!("/proc/sys/{name}");
        match fs::write(&path, value) {
            // A kernel without IPv6 does not have these settings.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.with_context(|| format!("writing \"{value}\" into {path}"))?,
        }
    }
    Ok(())
}

/// Turns the machine off. QEMU exits then.
pub(crate) fn power_off() -> ! {
    rustix::fs::sync();
    if let Err(error) = reboot(RebootCommand::PowerOff) {
        eprintln!("agent: power off failed: {error}");
    }
    // The power goes off while this thread waits; init must never return.
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}
