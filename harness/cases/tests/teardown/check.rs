// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checks after each pair, whatever the pair was.

use std::{
    thread,
    time::{Duration, Instant},
};

use cases::{CaseError, Family, Result, Testbed};
use protocol::{
    kernel::FreeDeferred,
    netdev::{ListQueues, ListStrayPools},
};

use crate::state::{MIB, QUEUE};

/// Timeout for conditions that the kernel checks once a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// No queue is bound, no net_iov is outstanding, there are `pools` page pools as before and none
/// that waits for pages, no dma-buf exists, and the kernel did not complain.
///
/// Where a binding had to stay, its dma-buf exists, and the list of dma-bufs is not read: there
/// the kernel prints the names of attached devices, even of those that are gone.
pub(crate) fn nothing_is_left(bed: &Testbed, pools: usize, binding_stays: bool) -> Result {
    bed.wait_rings_gone(bed.local)?;
    let queues = bed.guest.call(ListQueues::on(bed.local))?;
    if queues.iter().any(|queue| queue.dmabuf.is_some()) {
        return Err(CaseError::new(format!(
            "a queue is still bound: {queues:?}"
        )));
    }
    let left = bed.net_iovs_left(bed.local)?;
    if left != 0 {
        return Err(CaseError::new(format!("{left} net_iovs are out")));
    }
    empty(bed, "page pools wait for pages", || {
        let mut waiting = bed.page_pools(bed.local)?;
        waiting.retain(|pool| pool.detach_time.is_some());
        waiting.extend(bed.guest.call(ListStrayPools { ns: bed.local.ns })?);
        Ok(waiting)
    })?;
    let found = bed.page_pools(bed.local)?;
    if found.len() != pools {
        let what = format!("{pools} page pools are enough: {found:?}");
        return Err(CaseError::new(what));
    }
    if !binding_stays {
        empty(bed, "there are dma-bufs", || {
            let text = bed.read_file("/sys/kernel/debug/dma_buf/bufinfo")?;
            Ok(if text.contains("Total 0 objects") {
                Vec::new()
            } else {
                vec![text]
            })
        })?;
    }
    bed.guest.check_log()?;
    Ok(())
}

/// The NIC passes ordinary traffic in both directions, and its queue can be bound again.
pub(crate) fn works(bed: &Testbed) -> Result {
    for (from, to) in [(bed.local, bed.peer), (bed.peer, bed.local)] {
        bed.transfer(from, to, Family::V4, MIB)?;
    }
    bed.steer(bed.local, &[QUEUE])?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let received = stream.receive_devmem(bed, QUEUE, MIB, 4 * MIB, |_| ())?;
    if received.verified != MIB {
        return Err(CaseError::new(format!("bound again: {received:?}")));
    }
    Ok(())
}

/// Waits until there are none.
fn empty<T: std::fmt::Debug>(
    bed: &Testbed,
    what: &str,
    mut look: impl FnMut() -> Result<Vec<T>>,
) -> Result {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = look()?;
        if found.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(CaseError::new(format!("{what}: {found:?}")));
        }
        bed.guest.call(FreeDeferred {})?;
        thread::sleep(Duration::from_millis(50));
    }
}
