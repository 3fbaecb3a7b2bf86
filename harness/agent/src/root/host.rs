// SPDX-License-Identifier: MIT OR Apache-2.0

//! The host's file system as that of the guest's programs.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use protocol::program::Share;
use rustix::mount::MountFlags;

use super::mount_at::mount_at;

/// The host's files, as they are.
const HOST: &str = "/host";
/// What programs have changed.
const CHANGES: &str = "/changes";

/// Mounts the host's file system, exported as `tag`, on `root`, writable; what is written stays in
/// memory.
pub(super) fn mount_overlay(tag: &str, root: &Path) -> Result<()> {
    for folder in [HOST, CHANGES] {
        fs::create_dir_all(folder).with_context(|| format!("creating {folder}"))?;
    }
    // Files don't change on the host while a program runs, as far as it can tell: what was read once
    // is kept, which an emulated processor needs.
    let options = c"trans=virtio,version=9p2000.L,msize=512000,access=any,cache=loose";
    mount_at(
        tag,
        Path::new(HOST),
        "9p",
        MountFlags::RDONLY,
        Some(options),
    )?;
    mount_at(
        "tmpfs",
        Path::new(CHANGES),
        "tmpfs",
        MountFlags::empty(),
        Some(c"mode=0755"),
    )?;
    for folder in ["upper", "work"] {
        let folder = Path::new(CHANGES).join(folder);
        fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let options = c"lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work";
    mount_at(
        "overlay",
        root,
        "overlay",
        MountFlags::empty(),
        Some(options),
    )
}

/// Mounts a folder that keeps what is written to it.
pub(super) fn mount_share(share: &Share, root: &Path) -> Result<()> {
    let target = root.join(share.path.trim_start_matches('/'));
    let options = c"trans=virtio,version=9p2000.L,msize=512000,access=any,cache=mmap";
    mount_at(
        &share.tag,
        &target,
        "9p",
        MountFlags::empty(),
        Some(options),
    )
}
