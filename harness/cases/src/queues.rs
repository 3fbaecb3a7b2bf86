// SPDX-License-Identifier: MIT OR Apache-2.0

//! Who owns a queue: the kernel cleans up after its owner in the background.

use std::{
    ops::Range,
    thread,
    time::{Duration, Instant},
};

use protocol::{
    XdpSocket,
    netdev::{ListQueues, Queue},
};

use crate::{CaseError, Result, Station, Testbed};

/// How long the kernel may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Testbed {
    /// A zero-copy AF_XDP socket for a queue of the NIC under test, with chunks of a page.
    #[must_use]
    pub fn xdp_socket(&self, queue: u32, chunks: u32) -> XdpSocket {
        XdpSocket {
            ns: self.local.ns,
            interface: self.local.name(),
            queue,
            copy: false,
            need_wakeup: true,
            chunk: 4096,
            chunks,
            runts: false,
        }
    }

    /// Waits until no queue belongs to an io_uring.
    pub fn wait_rings_gone(&self, station: Station) -> Result {
        self.wait_queues(station, "to an io_uring", |queue| queue.io_uring)
    }

    /// Waits until no queue belongs to an AF_XDP socket. The interface has to be up.
    pub fn wait_xsk_gone(&self, station: Station) -> Result {
        self.wait_queues(station, "to an AF_XDP socket", |queue| queue.xsk)
    }

    /// A byte queue limits value, summed over `queues` of an interface.
    pub fn byte_queue_limits(
        &self,
        interface: &str,
        queues: Range<u32>,
        name: &str,
    ) -> Result<u64> {
        let file = format!("byte_queue_limits/{name}");
        queues
            .map(|queue| self.tx_queue(interface, queue, &file))
            .sum()
    }

    /// Bytes that the stack has queued on `queues` of an interface and that are not yet completed.
    pub fn bytes_in_flight(&self, interface: &str, queues: Range<u32>) -> Result<u64> {
        self.byte_queue_limits(interface, queues, "inflight")
    }

    /// Waits until everything that the stack has queued on `queues` of an interface was completed.
    pub fn wait_all_sent(&self, interface: &str, queues: Range<u32>) -> Result {
        self.wait_until(1, || {
            let in_flight = self.bytes_in_flight(interface, queues.clone())?;
            Ok((in_flight == 0).into())
        })?;
        Ok(())
    }

    fn wait_queues(&self, station: Station, whom: &str, belongs: fn(&Queue) -> bool) -> Result {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let queues = self.guest.call(ListQueues::on(station))?;
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
