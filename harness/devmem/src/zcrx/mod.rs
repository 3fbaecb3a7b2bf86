// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receiving through io_uring: zero-copy receive, or zcrx
//! (Documentation/networking/iou-zcrx.rst in the kernel tree).
//!
//! As with device memory TCP a queue of the NIC writes payload where the application wants it:
//! into ordinary memory or into a dma-buf. But the application learns it from completions instead of
//! control messages, and gives fragments back through a ring in shared memory instead of system
//! calls: the kernel keeps no list of tokens, so that a fragment costs less.
//!
//! It takes Linux 6.15 (a dma-buf: 6.16), `CAP_NET_ADMIN` in the initial user namespace, and what
//! [`crate::netdev::bind_rx`] takes of the interface: header split on, an hds-thresh of 0, no XDP
//! program, no other memory provider on the queue.
//!
//! ```no_run
//! use devmem::interface;
//! use devmem::zcrx::{Area, Completion, Config, InterfaceQueue, UserMemory};
//!
//! # fn main() -> devmem::Result<()> {
//! let memory = UserMemory::create(64 << 20)?;
//! let queue = InterfaceQueue::register(&Config::new(interface::index("eth0")?, 1), Area::User(&memory))?;
//!
//! let listener = std::net::TcpListener::bind("[::]:5201").expect("a free port");
//! let (stream, _) = listener.accept().expect("a peer");
//! let (mut receiver, mut refill) = queue.start()?;
//! receiver.receive_from(&stream)?;
//! let mut completions = Vec::new();
//! loop {
//!     receiver.wait(None, &mut completions)?;
//!     for completion in &completions {
//!         match completion {
//!             Completion::Fragment { fragment, .. } => {
//!                 println!("{} bytes at {:#x} of the area", fragment.len, fragment.offset);
//!                 // The NIC needs the memory back, else the connection stalls.
//!                 while refill.return_fragments(&[*fragment])? == 0 {
//!                     receiver.flush()?;
//!                 }
//!             }
//!             Completion::Ended { error: None, .. } => return Ok(()),
//!             Completion::Ended { error, .. } => panic!("{error:?}"),
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! # What the kernel copies
//!
//! Payload that arrives in host memory, because its packet came in through another queue or was
//! not split, is copied into a free buffer of the area, if the CPU can reach that: never into a
//! dma-buf, and then the receive ends with [`crate::Error::NoBufferToCopyInto`]. A completion does
//! not tell; [`Receiver::copied_bytes`] does. A queue without buffers copies nothing: packets are
//! lost, and sent again when buffers come back.
//!
//! # What io-uring lacks
//!
//! The ring, its queues and the receive operation are the `io-uring` crate's. As of 0.7.15 it
//! lacks, and this module brings:
//!
//! - `rx_buf_len` and `event_desc` of `struct io_uring_zcrx_ifq_reg`, which are reserved fields
//!   there, and `struct zcrx_event_desc` and `zcrx_stats`;
//! - a sound way to register: `Submitter::register_ifq` takes a shared reference to a struct that
//!   the kernel writes to;
//! - `IORING_ZCRX_AREA_DMABUF` and `struct io_uring_zcrx_offsets`, which it generates and does not
//!   export;
//! - `IORING_REGISTER_ZCRX_CTRL`, to flush the refill ring, and `IORING_REGISTER_QUERY`;
//! - the refill ring itself.

mod abi;
mod area;
mod receiver;
mod refill;
mod refusal;

use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use rustix::param::page_size;

pub use self::area::{Area, UserMemory};
pub use self::receiver::{Completion, Connection, Receiver};
pub use self::refill::{Fragment, Refill};

use self::refill::{MAX_ENTRIES, Region};
use self::refusal::Asked;
use crate::error::{Error, Refusal, Result};

/// What is tried, for error messages.
const OPERATION: &str = "io_uring zero-copy receive";

/// Completions of 32 bytes: 16 are the kernel's usual ones, 16 are zcrx's.
type Ring = IoUring<squeue::Entry, cqueue::Entry32>;

/// Which queue receives, and how.
#[derive(Debug, Clone)]
pub struct Config {
    ifindex: u32,
    queue: u32,
    rx_buf_len: Option<u32>,
    refill_entries: Option<u32>,
    completions: u32,
}

impl Config {
    /// RX queue `queue` of an interface, with buffers of a base page.
    #[must_use]
    pub fn new(ifindex: u32, queue: u32) -> Self {
        Self {
            ifindex,
            queue,
            rx_buf_len: None,
            refill_entries: None,
            completions: 4096,
        }
    }

    /// Size of a receive buffer in bytes: a power of two that the driver offers. The area must
    /// consist of physical pieces that are multiples of it.
    #[must_use]
    pub fn rx_buf_len(mut self, bytes: u32) -> Self {
        self.rx_buf_len = Some(bytes);
        self
    }

    /// How many fragments can wait in the refill ring for the driver, at most 32768. Without it
    /// there are twice as many as the area has buffers.
    #[must_use]
    pub fn refill_entries(mut self, entries: u32) -> Self {
        self.refill_entries = Some(entries);
        self
    }

    /// How many completions can wait for [`Receiver::wait`], at most 65536; 4096 without it.
    #[must_use]
    pub fn completions(mut self, entries: u32) -> Self {
        self.completions = entries;
        self
    }
}

/// A queue of a NIC that receives into an area, with the io_uring that owns it.
///
/// When it is dropped, or the [`Receiver`] that it became, or the process dies, the kernel gives
/// the queue back to host memory. That happens in the background: soon after, not before.
#[derive(Debug)]
pub struct InterfaceQueue {
    ring: RingWithQueue,
    region: Region,
    registration: abi::Registration,
    features: abi::Features,
}

/// The io_uring; it has no [`std::fmt::Debug`] of its own.
struct RingWithQueue(Ring);

impl std::fmt::Debug for RingWithQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IoUring({})", self.0.as_raw_fd())
    }
}

impl InterfaceQueue {
    /// Makes a queue receive into `area` instead of host memory.
    ///
    /// # Errors
    ///
    /// The precondition that does not hold.
    pub fn register(config: &Config, area: Area<'_>) -> Result<Self> {
        let target = area.target()?;
        let (len, dmabuf) = match target {
            abi::Target::User(memory) => (memory.size(), false),
            abi::Target::DmaBuf { len, .. } => (len, true),
        };
        // The ring belongs to the thread that enables it: `start`.
        let ring: Ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_r_disabled()
            .setup_cqsize(config.completions)
            .build(8)
            .map_err(|error| {
                Error::io(
                    "set up an io_uring (/proc/sys/kernel/io_uring_disabled)",
                    error,
                )
            })?;
        let fd = descriptor(&ring);
        let features = abi::features(fd);

        let buffers = len / config.rx_buf_len.unwrap_or(0).max(page_size() as u32) as usize;
        let entries = config
            .refill_entries
            .unwrap_or_else(|| u32::try_from(2 * buffers).unwrap_or(MAX_ENTRIES));
        let region = Region::create(entries)?;
        let request = abi::Request {
            ifindex: config.ifindex,
            queue: config.queue,
            entries: region.entries,
            rx_buf_len: config.rx_buf_len.unwrap_or(0),
            target,
            region: &region.memory,
            stats_offset: features.stats.then(|| region.stats_offset()),
        };
        let registration = abi::register(fd, &request).map_err(|error| {
            let asked = Asked {
                ifindex: config.ifindex,
                queue: config.queue,
                rx_buf_len: config.rx_buf_len,
                len,
                dmabuf,
            };
            let errno = error.raw_os_error().unwrap_or_default();
            refusal::name(Refusal::from_errno(errno), asked, offered(&ring))
        })?;
        Ok(Self {
            ring: RingWithQueue(ring),
            region,
            registration,
            features,
        })
    }

    /// Bytes of a receive buffer.
    #[must_use]
    pub fn rx_buf_len(&self) -> u32 {
        self.registration.rx_buf_len
    }

    /// Makes the calling thread the one that receives; the other value gives fragments back, from
    /// whatever thread.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the kernel refuses.
    pub fn start(self) -> Result<(Receiver, Refill)> {
        let refill = Refill::new(self.region.clone(), &self.registration);
        let stats = self.features.stats.then_some(self.region);
        let receiver = Receiver::start(self.ring, self.registration.id, stats)?;
        Ok((receiver, refill))
    }
}

fn descriptor(ring: &Ring) -> BorrowedFd<'_> {
    // SAFETY: the ring's descriptor is open as long as the ring, which is borrowed.
    unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }
}

/// Whether the running kernel has zero-copy receive.
fn offered(ring: &Ring) -> bool {
    let mut probe = Probe::new();
    let known = ring.submitter().register_probe(&mut probe).is_ok()
        && probe.is_supported(opcode::RecvZc::CODE);
    // A kernel without CONFIG_IO_URING_ZCRX knows the operation all the same. With it, the answer
    // is that there is no queue of this number.
    let flushed = abi::flush(descriptor(ring), u32::MAX);
    let configured = flushed.map_or_else(
        |error| error.raw_os_error() != Some(libc::EOPNOTSUPP),
        |()| true,
    );
    known && configured
}
