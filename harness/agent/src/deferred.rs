// SPDX-License-Identifier: MIT OR Apache-2.0

//! Skbs whose freeing a processor defers to the one that allocated them.

use std::{net::UdpSocket, thread};

use anyhow::{Context, Result, anyhow};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Makes every processor run its receive softirq, which frees the skbs deferred to it: a datagram
/// over the loopback interface is received on the processor that sent it.
pub(crate) fn free() -> Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0").context("binding to the loopback interface")?;
    let to = socket.local_addr()?;
    let all = sched_getaffinity(None).context("reading the affinity")?;

    for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)) {
        let mut one = CpuSet::new();
        one.set(cpu);
        // The affinity goes with the thread.
        let sent = thread::scope(|scope| {
            let sender = scope.spawn(|| -> Result<()> {
                sched_setaffinity(None, &one).with_context(|| format!("moving to CPU {cpu}"))?;
                socket.send_to(&[0], to).context("sending to myself")?;
                Ok(())
            });
            sender.join()
        });
        sent.map_err(|_| anyhow!("the sender on CPU {cpu} panicked"))??;
    }
    Ok(())
}
