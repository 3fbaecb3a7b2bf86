// SPDX-License-Identifier: MIT OR Apache-2.0

//! XDP programs: made here, instruction by instruction, and attached to interfaces.
//!
//! A program counts what it is for in a map, which is kept here by the interface that it was
//! attached to. The kernel keeps what is attached.

mod assembler;
mod bpf;
mod program;

use std::{
    collections::HashMap,
    os::fd::{AsRawFd, OwnedFd},
    sync::{LazyLock, Mutex},
};

use anyhow::{Context, Result};
use protocol::{Ns, XdpAction, xdp::AttachXdp};

use crate::{
    control::lock,
    netns,
    rtnetlink::{index_of, set_xdp},
};

/// The counters of the programs that were attached last.
static COUNTERS: LazyLock<Mutex<HashMap<(Ns, String), OwnedFd>>> = LazyLock::new(Mutex::default);

/// Makes a program and attaches it to an interface.
pub(crate) fn attach(request: &AttachXdp) -> Result<()> {
    let counter = bpf::counter()?;
    let target = match &request.program.action {
        // Which interface an index means, the namespace of the caller says.
        XdpAction::Redirect { ns, interface } => Some(netns::within(*ns, || {
            bpf::device_map(index_of(interface)?)
        })?),
        XdpAction::RedirectToCpu(cpu) => Some(bpf::cpu_map(*cpu)?),
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

/// How many frames the program was for that was attached to an interface last.
pub(crate) fn runs(ns: Ns, interface: &str) -> Result<u64> {
    let counters = lock(&COUNTERS);
    let counter = counters
        .get(&(ns, interface.to_owned()))
        .with_context(|| format!("no program was attached to {interface}"))?;
    bpf::count(counter)
}
