// SPDX-License-Identifier: MIT OR Apache-2.0

//! PID 1 of the guest.
//!
//! The agent makes the guest usable (mounts, sysctls, the peer's network namespace), then serves
//! the host's requests over a virtio-serial port until it is told to power off. There is no
//! shell and no other program: an initramfs with this binary as `/init` is the whole user space.
//! A job that can be killed runs in a second process of the same program.

mod children;
mod clock;
mod control;
mod deferred;
mod dispatch;
mod engine;
mod failure;
mod faults;
mod files;
mod flow_queue;
mod init;
mod interfaces;
mod jobs;
mod leaks;
mod listening;
mod lock;
mod modules;
mod netdev;
mod netns;
mod outbox;
mod packet;
mod ping;
mod port;
mod random;
mod registers;
mod root;
mod rtnetlink;
mod sleep;
mod sockopt;
mod timestamp;
mod xdp;

use std::env;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    if env::args().nth(1).as_deref() == Some(jobs::ARGUMENT) {
        return control::serve_standard_streams();
    }
    if let Err(error) = run() {
        outbox::report_panic(&format!("the agent cannot go on: {error:#}"));
    }
    init::power_off();
}

/// Everything from the first mount to the host's request to power off.
fn run() -> Result<()> {
    if !rustix::process::getpid().is_init() {
        bail!("the agent is the init process of a guest; it does nothing on any other machine");
    }
    control::install_panic_hook();
    init::mounts().context("mounting the file systems")?;
    netns::create_peer().context("creating the peer's network namespace")?;
    init::sysctls().context("setting sysctls")?;
    control::serve()
}
