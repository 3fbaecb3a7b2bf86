// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the user wants of a guest, and what is the same in all of them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use protocol::program::User;
use vm::Link;

use crate::model::Model;

/// Where the host's file system is mounted in the guest.
pub(super) const ROOT: &str = "/lab";
/// The name of the peer's namespace.
pub(super) const PEER: &str = "peer";
/// The mount tag of the host's file system.
pub(super) const HOST: &str = "host";
/// The RX queue that TCP is steered to.
pub(super) const QUEUE: u32 = 1;
/// The wire of the NIC, and the one for control.
pub(super) const WIRES: u8 = 2;
/// The accelerator's memory, as its driver offers it.
pub(super) const ACCELERATOR: &str = "/dev/ivshmem_mem0";

/// A guest, and what its programs are given of the host.
#[derive(clap::Args)]
pub(crate) struct Setup {
    /// Processors of the guest, and so queue pairs of its NICs
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(super) cpus: u32,
    /// Make the NICs this model of the 82576
    #[arg(long, default_value = "qemu")]
    pub(super) model: Model,
    /// Steer only TCP to this port to the queue that may be bound, by flow rules, and all else to the
    /// others, so that ordinary connections work. Takes our model of the NIC; may be given again
    #[arg(long, value_name = "PORT", conflicts_with = "bare")]
    pub(super) port: Vec<u16>,
    /// What the wires do to frames, with our model: any of rate (bits per second), delay-us,
    /// loss-ppm, reorder-ppm, duplicate-ppm, corrupt-ppm (parts of a million) and seed
    #[arg(long, value_name = "NAME=N[,NAME=N]...")]
    pub(super) link: Option<Link>,
    /// Put the devices behind an IOMMU: access to what the driver has not mapped, or has unmapped,
    /// is refused and fails the run. Our model of the NIC then can't reach the accelerator
    #[arg(long)]
    pub(super) iommu: bool,
    /// Memory of the guest in MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    pub(super) memory: u64,
    /// Keep what is changed in this folder of the host; may be given again
    #[arg(long, value_name = "DIR")]
    pub(super) rw: Vec<PathBuf>,
    /// Load no driver for the NICs, and set nothing up
    #[arg(long)]
    pub(super) bare: bool,
    /// With 2, the peer is in a machine of its own, at the other end of the same
    /// wire, in a namespace of the same name
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "bare",
          value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(super) guests: u8,
    /// Count what the processor does, in windows that the program marks
    /// (nobounce.h, or the crate `marker`), or else in its whole run. The guest
    /// has one processor then, which does the peer's work, too
    #[arg(long)]
    pub(super) counted: bool,
    /// Copy what crossed the wire to this file, for wireshark or tcpdump
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
    /// Record this event of the kernel's, such as `napi:*`, beside the logs, for
    /// trace-cmd and perfetto; may be given again
    #[arg(long, value_name = "EVENT")]
    pub(super) trace: Vec<String>,
    /// Have the guest wait for gdb before its first instruction
    #[arg(long)]
    pub(super) gdb: bool,
    /// Have gdb look for modules of yours in this folder, too; may be given again
    #[arg(long, value_name = "DIR", requires = "gdb", value_parser = folder)]
    pub(super) symbols: Vec<PathBuf>,
    /// What `ls` and `enter` call this guest
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Run programs as your own user, not as root: they may allocate dma-bufs from the
    /// accelerator and udmabuf, but not bind a receive queue
    #[arg(long)]
    pub(super) user: bool,
}

/// A folder that is there, from the root on: gdb has a working directory of its own, and the kernel's
/// scripts take paths apart at spaces.
fn folder(name: &str) -> Result<PathBuf, String> {
    let path = Path::new(name)
        .canonicalize()
        .map_err(|error| error.to_string())?;
    match (
        path.is_dir(),
        path.to_string_lossy().contains(char::is_whitespace),
    ) {
        (false, _) => Err("is no folder".to_owned()),
        (_, true) => Err("gdb's lx-symbols takes no path with spaces in it".to_owned()),
        _ => Ok(path),
    }
}

/// Whom programs run as: root, or the user who has asked.
pub(super) fn user(wanted: bool) -> Result<Option<User>> {
    if !wanted {
        return Ok(None);
    }
    let groups = rustix::process::getgroups().context("finding your groups")?;
    Ok(Some(User {
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        groups: groups.iter().map(|group| group.as_raw()).collect(),
    }))
}
