// SPDX-License-Identifier: MIT OR Apache-2.0

//! A root file system for external programs.

mod host;
mod mount_at;

use std::{
    fs::{self, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::{
            fs::{PermissionsExt, symlink},
            process::CommandExt,
        },
    },
    path::Path,
    process::Command,
};

use anyhow::{Context, Result};
use protocol::{
    Ns,
    program::{MountRoot, Program, RootSource},
};
use rustix::{
    mount::{MountFlags, mount, mount_bind, mount_move},
    process::{chdir, chroot},
    thread::{
        Gid, Uid, UnshareFlags, set_thread_gid, set_thread_groups, set_thread_uid, unshare_unsafe,
    },
};

use self::mount_at::mount_at;
use crate::netns;

/// What the kernel has for programs: file system type, mount point. Directories that are missing in a
/// file system mounted before are created.
const KERNEL: &[(&str, &str)] = &[
    ("proc", "proc"),
    ("sysfs", "sys"),
    ("debugfs", "sys/kernel/debug"),
    ("tracefs", "sys/kernel/tracing"),
    ("configfs", "sys/kernel/config"),
    ("bpf", "sys/fs/bpf"),
    ("devtmpfs", "dev"),
    ("devpts", "dev/pts"),
];
/// What is empty at first, where nothing else can be written.
const MEMORY: &[(&str, &str)] = &[("tmpfs", "dev/shm"), ("tmpfs", "run"), ("tmpfs", "tmp")];
/// The same in the host's file system: sockets in its `/run` lead nowhere.
const HOST_MEMORY: &[(&str, &str)] = &[("tmpfs", "dev/shm"), ("tmpfs", "run")];

/// Mounts the file system, and everything in it.
pub(crate) fn set_up(request: &MountRoot) -> Result<()> {
    let root = Path::new(&request.directory);
    fs::create_dir_all(root).with_context(|| format!("creating {}", root.display()))?;
    match &request.source {
        RootSource::Disk { device } => {
            mount_at(device, root, "ext4", MountFlags::RDONLY, None)?;
            mount_all(root, KERNEL)?;
            mount_all(root, MEMORY)?;
        }
        RootSource::Host { tag, shares } => {
            host::mount_overlay(tag, root)?;
            mount_all(root, KERNEL)?;
            mount_all(root, HOST_MEMORY)?;
            for share in shares {
                host::mount_share(share, root)?;
            }
        }
    }
    for node in &request.for_users {
        give_to_users(Path::new(node))?;
    }
    // Shells use this for `<(...)`.
    let descriptors = root.join("dev/fd");
    symlink("/proc/self/fd", &descriptors)
        .with_context(|| format!("creating {}", descriptors.display()))?;
    name_peer(&root.join("run/netns"), &request.peer)
}

/// Mounts a table in a root file system.
fn mount_all(root: &Path, table: &[(&str, &str)]) -> Result<()> {
    for (kind, place) in table {
        let target = root.join(place);
        // A kernel without it has no folder for it.
        if !target.is_dir() && fs::create_dir(&target).is_err() {
            continue;
        }
        mount_at(kind, &target, kind, MountFlags::empty(), None)?;
    }
    Ok(())
}

/// Has all users read and write a device, as udev's rules do. There is one devtmpfs, wherever it is mounted.
fn give_to_users(node: &Path) -> Result<()> {
    match fs::set_permissions(node, Permissions::from_mode(0o666)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("giving {} to all users", node.display()))
        }
        _ => Ok(()),
    }
}

/// Gives the peer's namespace a name, as `ip netns add` does.
fn name_peer(folder: &Path, name: &str) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let place = folder.join(name);
    fs::write(&place, "").with_context(|| format!("creating {}", place.display()))?;
    let peer = format!("/proc/self/fd/{}", netns::peer()?.as_raw_fd());
    mount_bind(&peer, &place).with_context(|| format!("mounting the peer on {}", place.display()))
}

/// Makes a command run as the program wants it: with its file system as `/`, in its own mount
/// namespace and directory, and as its user.
pub(crate) fn enter(command: &mut Command, program: &Program) {
    let (root, directory) = (program.root.clone(), program.directory.clone());
    let in_peer = program.ns == Ns::Peer;
    let user = program.user.clone();
    let groups: Vec<Gid> = user
        .iter()
        .flat_map(|user| &user.groups)
        .map(|&gid| Gid::from_raw(gid))
        .collect();
    let enter = move || -> io::Result<()> {
        // SAFETY: A new mount namespace leaves the file descriptor table alone, and the working
        // directory is this process's own: it was forked.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        chdir(root.as_str())?;
        // Not chroot alone: user namespaces can't be made in one.
        mount_move(".", "/")?;
        chroot(".")?;
        if in_peer {
            // The other one shows the interfaces of the namespace that it was mounted in.
            mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
        }
        chdir(directory.as_str())?;
        if let Some(user) = &user {
            set_thread_groups(&groups)?;
            set_thread_gid(Gid::from_raw(user.gid))?;
            set_thread_uid(Uid::from_raw(user.uid))?;
        }
        Ok(())
    };
    // SAFETY: Between fork and exec this makes system calls with paths that are short enough to fit
    // on the stack, and allocates nothing.
    unsafe { command.pre_exec(enter) };
}
