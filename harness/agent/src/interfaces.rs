// SPDX-License-Identifier: MIT OR Apache-2.0

//! Waiting for interfaces.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use protocol::{Ns, link::Interface, net::Mac};
use rustix::io::Errno;

use crate::{netns, rtnetlink};

/// How often to check the state.
const INTERVAL: Duration = Duration::from_millis(5);

/// Waits for an interface with this Ethernet address.
pub(crate) fn wait_for_interface(ns: Ns, mac: Mac, timeout: Duration) -> Result<Interface> {
    netns::within(ns, || {
        poll(timeout, || {
            let found = rtnetlink::list()?
                .into_iter()
                .find(|found| found.mac == mac);
            Ok(found)
        })
        .with_context(|| format!("waiting for an interface with address {mac}"))
    })
}

/// Waits until an interface has, or has no, carrier.
///
/// The kernel attaches qdiscs only after the carrier is up, in a work item: packets sent before
/// that are dropped. The same work item sets the interface running.
pub(crate) fn wait_for_carrier(ns: Ns, name: &str, carrier: bool, timeout: Duration) -> Result<()> {
    netns::within(ns, || {
        poll(timeout, || {
            let mut all = rtnetlink::list()?.into_iter();
            let found = all.find(|found| found.name == name).ok_or(Errno::NODEV)?;
            let running = found.running || !carrier;
            Ok((found.carrier == carrier && running).then_some(()))
        })
        .with_context(|| {
            let state = if carrier { "have" } else { "lose" };
            format!("waiting for {name} to {state} its carrier")
        })
    })
}

/// Calls `look` until it finds something; ETIMEDOUT after `timeout`.
pub(crate) fn poll<T>(timeout: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if start.elapsed() >= timeout {
            return Err(Errno::TIMEDOUT.into());
        }
        thread::sleep(INTERVAL);
    }
}
