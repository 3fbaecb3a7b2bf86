// SPDX-License-Identifier: MIT OR Apache-2.0

//! The two network namespaces.
//!
//! The namespace is per thread, and a socket keeps that of the thread that created it. So work for
//! the peer is done by threads that enter its namespace and end there.

use std::{
    fs::File,
    os::fd::{AsFd, OwnedFd},
    sync::OnceLock,
    thread,
};

use anyhow::{Context, Result, anyhow};
use protocol::Ns;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

static PEER: OnceLock<OwnedFd> = OnceLock::new();

/// Makes the peer's namespace. Called once, at boot.
pub(crate) fn create_peer() -> Result<()> {
    let fd = in_thread(|| {
        // SAFETY: A new network namespace leaves the file descriptor table of the thread alone,
        // which is what `unshare` could break.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.context("unshare")?;
        Ok(OwnedFd::from(File::open("/proc/thread-self/ns/net")?))
    })?;
    PEER.set(fd).map_err(|_| anyhow!("it exists already"))
}

/// The peer's namespace as a file descriptor.
pub(crate) fn peer() -> Result<&'static OwnedFd> {
    PEER.get()
        .context("the peer's namespace does not exist yet")
}

/// Runs `work` in a namespace and returns what it returns.
pub(crate) fn within<T: Send>(ns: Ns, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match ns {
        Ns::Local => work(),
        Ns::Peer => in_thread(|| {
            move_into_link_name_space(peer()?.as_fd(), Some(LinkNameSpaceType::Network))
                .context("entering the peer's namespace")?;
            work()
        }),
    }
}

/// Runs `work` in a thread of its own.
fn in_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        match thread.join() {
            Ok(result) => result,
            // The panic hook is turning the guest off.
            Err(_) => Err(anyhow!("a thread of the agent panicked")),
        }
    })
}
