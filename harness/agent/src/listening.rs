// SPDX-License-Identifier: MIT OR Apache-2.0

//! TCP sockets that listen.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Result;
use protocol::{Ns, program::WaitListening};

use crate::{files, interfaces::poll, netns};

/// The state in the kernel's tables, `TCP_LISTEN`.
const LISTEN: &str = "0A";

/// Waits for one on another port than those excepted; returns all such ports.
pub(crate) fn wait(request: &WaitListening) -> Result<Vec<u16>> {
    poll(Duration::from_millis(request.timeout_ms), || {
        let mut ports = ports(request.ns)?;
        ports.retain(|port| !request.except.contains(port));
        Ok((!ports.is_empty()).then(|| ports.into_iter().collect()))
    })
}

fn ports(ns: Ns) -> Result<BTreeSet<u16>> {
    let tables = netns::within(ns, || {
        let table = |name| files::read(&format!("/proc/thread-self/net/{name}"));
        Ok(table("tcp")? + &table("tcp6")?)
    })?;
    Ok(tables.lines().filter_map(listening).collect())
}

/// The port of a line in these tables, if its socket listens.
fn listening(line: &str) -> Option<u16> {
    let mut words = line.split_whitespace().skip(1);
    let (local, state) = (words.next()?, words.nth(1)?);
    let (_, port) = local.rsplit_once(':')?;
    (state == LISTEN).then(|| u16::from_str_radix(port, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_that_listen_count() {
        let line = "   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000";
        assert_eq!(listening(line), Some(0x1451));
        assert_eq!(listening(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(
            listening("  sl  local_address rem_address   st tx_queue"),
            None
        );
    }
}
