// SPDX-License-Identifier: MIT OR Apache-2.0

//! What only trying shows. All of it is returned at once.

use std::time::Duration;

use devmem_tcp::dmabuf::DmaBuf;
use devmem_tcp::heap::Heap;
use devmem_tcp::interface::Interface;
use devmem_tcp::memory::Exporter;
use devmem_tcp::netdev::{Netdev, RxBinding, TxBinding};
use devmem_tcp::udmabuf::{Backing, Udmabuf};
use devmem_tcp::zcrx::{Area, Config, InterfaceQueue, UserMemory};
use devmem_tcp::{BindError, RequestError};

use super::facts::{Attempt, Attempts};
use crate::asked::Asked;

/// A queue that no interface has.
const NO_QUEUE: u32 = i32::MAX as u32;
/// Sizes of receive buffers to try, in bytes.
const PAGE_SIZES: [u32; 4] = [8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// What is sent from, or copied to: nothing.
const SMALL: usize = 64 << 10;
/// How often, and how long, to look whether an io_uring has returned its queue.
const LOOKS: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Which RX queue may be bound for a moment, or why there is none.
pub(super) type Queue = Result<u32, String>;

/// Tries everything. Without a queue it is only what nobody notices.
pub(super) fn all(interface: Interface, queue: &Queue, rx_ring: u32, no_device: bool) -> Attempts {
    // For a driver that fills its ring, twice.
    let len = (2 * 4096 * rx_ring as usize).clamp(1 << 20, 64 << 20);
    let bind_rx = bind_rx(interface, queue, len);
    let bound = queue.as_ref().ok().copied();
    let page_sizes = match (bound, &bind_rx) {
        (Some(queue), Attempt::Works(_)) => page_sizes(interface, queue, len),
        _ => Asked::unknown("it takes a binding"),
    };
    Attempts {
        bind_rx,
        page_sizes,
        bind_tx: bind_tx(interface),
        zcrx: match queue {
            Ok(queue) => zcrx(interface, *queue, len),
            Err(why) => Attempt::Unknown(why.clone()),
        },
        no_device: match no_device {
            true => register(&Config::without_device(), SMALL),
            false => Attempt::Unknown("it was not tried".to_owned()),
        },
    }
}

fn bind_rx(interface: Interface, queue: &Queue, len: usize) -> Attempt {
    let memory = match memory(queue.as_ref().map_or(SMALL, |_| len)) {
        Ok(memory) => memory,
        Err(unknown) => return unknown,
    };
    let bind = |queue| RxBinding::to(interface).queue(queue).bind(&memory);
    match queue {
        Ok(queue) => bind(*queue).map_or_else(
            |error| meaning(&error),
            |_| Attempt::Works(format!("a dma-buf was bound to queue {queue}")),
        ),
        // Drivers without queue management are asked for before the queue is.
        Err(why) => match bind(NO_QUEUE).map_err(|error| meaning(&error)) {
            Err(lacks @ Attempt::Lacks(_)) => lacks,
            _ => Attempt::Unknown(why.clone()),
        },
    }
}

/// The sizes that a binding can be made with. Its memory must be contiguous in pieces of that size.
fn page_sizes(interface: Interface, queue: u32, len: usize) -> Asked<Vec<u32>> {
    let contiguous = Heap::open("system")
        .and_then(|heap| heap.create(len))
        .or_else(|_| {
            let huge = Udmabuf::backed_by(Backing::HugePages2M);
            let memory = huge.allocate(len.next_multiple_of(2 << 20), 2 << 20);
            memory.map(|memory| memory.into_parts().0)
        });
    let memory = match contiguous {
        Ok(memory) => memory,
        Err(error) => return Asked::unknown(error),
    };
    let bound = |size: &u32| {
        let binder = RxBinding::to(interface).queue(queue).rx_page_size(*size);
        binder.bind(&memory).is_ok()
    };
    Asked::Known(PAGE_SIZES.into_iter().filter(bound).collect())
}

/// It takes no privilege, and nothing is sent.
fn bind_tx(interface: Interface) -> Attempt {
    match memory(SMALL) {
        Err(unknown) => unknown,
        Ok(memory) => TxBinding::to(interface).bind(&memory).map_or_else(
            |error| meaning(&error),
            |_| Attempt::Works("a dma-buf was bound".to_owned()),
        ),
    }
}

fn zcrx(interface: Interface, queue: u32, len: usize) -> Attempt {
    let registered = register(&Config::new(interface, queue), len);
    // The kernel returns it in the background.
    for _ in 0..LOOKS {
        let queues = Netdev::new().queues(interface).unwrap_or_default();
        if !queues.iter().any(|q| q.id == queue && q.io_uring) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    registered
}

fn register(config: &Config, len: usize) -> Attempt {
    let memory = match UserMemory::create(len) {
        Ok(memory) => memory,
        Err(error) => return Attempt::Unknown(error.to_string()),
    };
    match InterfaceQueue::register(config, Area::User(&memory)) {
        Ok(_) => Attempt::Works("an area was registered".to_owned()),
        Err(error) => meaning(&error),
    }
}

/// Any dma-buf.
fn memory(len: usize) -> Result<DmaBuf, Attempt> {
    let memory = Udmabuf::new()
        .create(len)
        .map(|memory| memory.into_parts().0);
    memory
        .or_else(|_| Heap::open("system")?.create(len))
        .map_err(|_| Attempt::Unknown("there is no dma-buf to try with".to_owned()))
}

/// What a refusal says of the driver and the kernel.
fn meaning(error: &BindError) -> Attempt {
    let said = error.to_string();
    match error {
        // Asked for behind queue management (__netif_mp_open_rxq in net/core/netdev_rx_queue.c).
        BindError::HeaderSplitOff { .. }
        | BindError::HdsThreshNotZero { .. }
        | BindError::XdpAttached { .. }
        | BindError::QueueAlreadyBound { .. }
        | BindError::QueueUsedByAfXdp { .. }
        | BindError::QueueLeased { .. } => Attempt::NotNow(said),
        BindError::NoQueueManagement { .. }
        | BindError::NoDma { .. }
        | BindError::NoDeviceMemoryTx { .. }
        | BindError::NoPeerToPeer { .. }
        | BindError::DmaBufNotMapped { .. }
        | BindError::Request(
            RequestError::KernelTooOld { .. } | RequestError::Unsupported { .. },
        ) => Attempt::Lacks(said),
        _ => Attempt::Unknown(said),
    }
}
