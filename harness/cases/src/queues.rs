// SPDX-License-Identifier: MIT OR Apache-2.0

//! Whom queues belong to: what an owner leaves behind, the kernel takes back in the background.

use std::{
    thread,
    time::{Duration, Instant},
};

use protocol::netdev::{ListQueues, Queue};

use crate::{CaseError, Result, Station, Testbed};

/// How long the kernel may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Testbed {
    /// Waits until no queue belongs to an io_uring.
    pub fn wait_rings_gone(&self, station: Station) -> Result {
        self.wait_queues(station, "to an io_uring", |queue| queue.io_uring)
    }

    /// Waits until no queue belongs to an AF_XDP socket. The interface has to be up.
    pub fn wait_xsk_gone(&self, station: Station) -> Result {
        self.wait_queues(station, "to an AF_XDP socket", |queue| queue.xsk)
    }

    fn wait_queues(&self, station: Station, whom: &str, belongs: fn(&Queue) -> bool) -> Result {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let queues = self.guest.call(ListQueues {
                ns: station.ns,
                interface: station.name(),
            })?;
            if !queues.iter().any(belongs) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(CaseError::new(format!(
                    "a queue still belongs {whom}: {queues:?}"
                )));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}
