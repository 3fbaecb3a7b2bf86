// SPDX-License-Identifier: MIT OR Apache-2.0

//! A root file system for external programs.

use std::{
    fs, io,
    os::{
        fd::AsRawFd,
        unix::{fs::symlink, process::CommandExt},
    },
    path::Path,
    process::Command,
};

use anyhow::{Context, Result};
use protocol::program::MountRoot;
use rustix::{
    mount::{MountFlags, mount, mount_bind, mount_move},
    process::{chdir, chroot},
    thread::{UnshareFlags, unshare_unsafe},
};

use crate::netns;

/// File system type, mount point. Directories that are not in the image are created: those within a
/// file system mounted before.
const MOUNTS: &[(&str, &str)] = &[
    ("proc", "proc"),
    ("sysfs", "sys"),
    ("debugfs", "sys/kernel/debug"),
    ("tracefs", "sys/kernel/tracing"),
    ("configfs", "sys/kernel/config"),
    ("bpf", "sys/fs/bpf"),
    ("devtmpfs", "dev"),
    ("devpts", "dev/pts"),
    ("tmpfs", "dev/shm"),
    ("tmpfs", "run"),
    ("tmpfs", "tmp"),
];

/// Mounts the file system, and everything in it.
pub(crate) fn set_up(request: &MountRoot) -> Result<()> {
    let root = Path::new(&request.directory);
    fs::create_dir_all(root).with_context(|| format!("creating {}", root.display()))?;
    mount(
        request.device.as_str(),
        root,
        "ext4",
        MountFlags::RDONLY,
        None,
    )
    .with_context(|| format!("mounting {}", request.device))?;
    for (kind, place) in MOUNTS {
        let target = root.join(place);
        if !target.is_dir() {
            fs::create_dir(&target).with_context(|| format!("creating {}", target.display()))?;
        }
        mount(*kind, &target, *kind, MountFlags::empty(), None)
            .with_context(|| format!("mounting {kind} on {}", target.display()))?;
    }
    // Shells use this for `<(...)`.
    let descriptors = root.join("dev/fd");
    symlink("/proc/self/fd", &descriptors)
        .with_context(|| format!("creating {}", descriptors.display()))?;
    name_peer(&root.join("run/netns"), &request.peer)
}

/// Gives the peer's namespace a name, as `ip netns add` does.
fn name_peer(folder: &Path, name: &str) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let place = folder.join(name);
    fs::write(&place, "").with_context(|| format!("creating {}", place.display()))?;
    let peer = format!("/proc/self/fd/{}", netns::peer()?.as_raw_fd());
    mount_bind(&peer, &place).with_context(|| format!("mounting the peer on {}", place.display()))
}

/// Makes a command run with `root` as its `/`, in its own mount namespace and in `directory`.
pub(crate) fn enter(command: &mut Command, root: &str, directory: &str) {
    let (root, directory) = (root.to_owned(), directory.to_owned());
    let enter = move || -> io::Result<()> {
        // SAFETY: A new mount namespace leaves the file descriptor table alone, and the working
        // directory is this process's own: it was forked.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        chdir(root.as_str())?;
        // Not chroot alone: user namespaces can't be made in one.
        mount_move(".", "/")?;
        chroot(".")?;
        chdir(directory.as_str())?;
        Ok(())
    };
    // SAFETY: Between fork and exec this makes system calls with paths that are short enough to fit
    // on the stack, and allocates nothing.
    unsafe { command.pre_exec(enter) };
}
