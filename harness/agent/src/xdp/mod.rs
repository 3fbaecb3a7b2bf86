// SPDX-License-Identifier: MIT OR Apache-2.0

//! XDP programs: assembled here, instruction by instruction, and attached to interfaces.
//!
//! A program counts the frames it handles in a map, which is kept here by the interface that it was
//! attached to. The kernel keeps attached programs.

mod assembler;
mod bpf;
mod program;
mod socket;

use std::{
    collections::HashMap,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::{LazyLock, Mutex},
};

use anyhow::{Context, Result};
use protocol::{Ns, XdpAction, xdp::AttachXdp};

pub(crate) use socket::{Binding, XdpSocket};

use crate::{
    lock::lock,
    netns,
    rtnetlink::{index_of, set_xdp},
};

/// The counters of the programs that were attached last.
static COUNTERS: LazyLock<Mutex<HashMap<(Ns, String), OwnedFd>>> = LazyLock::new(Mutex::default);

/// A queue of an interface.
type Queue = (Ns, String, u32);

/// Maps with the sockets that are bound to queues.
static SOCKETS: LazyLock<Mutex<HashMap<Queue, OwnedFd>>> = LazyLock::new(Mutex::default);

/// Lets programs send frames to a socket.
pub(crate) fn offer(ns: Ns, interface: &str, queue: u32, socket: &impl AsFd) -> Result<()> {
    let map = bpf::socket_map(queue, socket.as_fd())?;
    lock(&SOCKETS).insert((ns, interface.to_owned(), queue), map);
    Ok(())
}

/// Lets no further programs do so.
pub(crate) fn withdraw(ns: Ns, interface: &str, queue: u32) {
    lock(&SOCKETS).remove(&(ns, interface.to_owned(), queue));
}

/// Assembles a program and attaches it to an interface.
pub(crate) fn attach(request: &AttachXdp) -> Result<()> {
    let counter = bpf::counter()?;
    let target = match &request.program.action {
        // An interface index is looked up in the caller's namespace.
        XdpAction::Redirect { ns, interface } => Some(netns::within(*ns, || {
            bpf::device_map(index_of(interface)?)
        })?),
        XdpAction::RedirectToCpu(cpu) => Some(bpf::cpu_map(*cpu)?),
        XdpAction::RedirectToSocket(queue) => {
            let sockets = lock(&SOCKETS);
            let map = sockets
                .get(&(request.ns, request.interface.clone(), *queue))
                .with_context(|| format!("no socket is bound to queue {queue}"))?;
            Some(map.try_clone().context("sharing a map")?)
        }
        _ => None,
    };
    let instructions = program::assemble(&request.program, &counter, target.as_ref());
    let program = bpf::load(&instructions, request.program.fragments)?;
    netns::within(request.ns, || {
        set_xdp(&request.interface, Some(program.as_raw_fd()))
    })?;
    lock(&COUNTERS).insert((request.ns, request.interface.clone()), counter);
    Ok(())
}

/// How many frames the last program attached to an interface has handled.
pub(crate) fn runs(ns: Ns, interface: &str) -> Result<u64> {
    let counters = lock(&COUNTERS);
    let counter = counters
        .get(&(ns, interface.to_owned()))
        .with_context(|| format!("no program was attached to {interface}"))?;
    bpf::count(counter)
}
