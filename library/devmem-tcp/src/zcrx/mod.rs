// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receiving through io_uring: zero-copy receive, or zcrx
//! (Documentation/networking/iou-zcrx.rst in the kernel tree).
//!
//! As with device memory TCP a queue of the NIC writes payload where the application wants it:
//! into ordinary memory or into a dma-buf. But the application learns it from completions instead of
//! control messages, and recycles fragments through a ring in shared memory instead of system
//! calls: the kernel keeps no list of tokens, so that a fragment costs less.
//!
//! It takes Linux 6.15 (a dma-buf: 6.16), `CAP_NET_ADMIN` in the initial user namespace, and what
//! [`crate::netdev::RxBinder::bind`] takes of the interface: header split on, an hds-thresh of 0, no XDP
//! program, no other memory provider on the queue.
//!
//! [`InterfaceQueue`] and [`Receiver`] have a ring of their own:
//!
//! ```no_run
//! use devmem_tcp::interface::Interface;
//! use devmem_tcp::zcrx::{Area, Config, End, Event, InterfaceQueue, UserMemory};
//!
//! # fn main() -> devmem_tcp::Result<()> {
//! let memory = UserMemory::create(64 << 20)?;
//! let config = Config::new(Interface::by_name("eth0")?, 1);
//! let queue = InterfaceQueue::register(&config, Area::User(&memory))?;
//!
//! let listener = std::net::TcpListener::bind("[::]:5201").expect("a free port");
//! let (stream, _) = listener.accept().expect("a peer");
//! let (mut receiver, mut refill) = queue.start()?;
//! receiver.receive_from(&stream)?;
//! let mut events = Vec::new();
//! loop {
//!     receiver.wait(None, &mut events)?;
//!     for event in events.drain(..) {
//!         match event {
//!             Event::Fragment { fragment, .. } => {
//!                 println!("{} bytes at {:#x} of the area", fragment.len(), fragment.offset());
//!                 // The NIC needs the memory back, else the connection stalls.
//!                 refill.recycle([fragment])?;
//!             }
//!             Event::Ended { end: End::Failed(error), .. } => return Err(error.into()),
//!             Event::Ended { .. } => return Ok(()),
//!             _ => {}
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! [`Queue`] is the same in a ring of the caller's own, beside its other requests:
//!
//! ```no_run
//! # use devmem_tcp::zcrx::{Area, Config, Outcome, Queue, UserMemory};
//! # fn example(stream: std::net::TcpStream) -> Result<(), Box<dyn std::error::Error>> {
//! let ring: io_uring::IoUring<io_uring::squeue::Entry, io_uring::cqueue::Entry32> = io_uring::IoUring::builder()
//!     .setup_single_issuer()
//!     .setup_defer_taskrun()
//!     .setup_cqsize(4096)
//!     .build(64)?;
//! let memory = UserMemory::create(64 << 20)?;
//! let (queue, mut refill) = Queue::register(&ring, &Config::without_device(), Area::User(&memory))?;
//! let mut ring = ring;
//! // SAFETY: `stream` stays open until the last completion.
//! unsafe { ring.submission().push(&queue.receive(&stream, 7))? };
//! ring.submit_and_wait(1)?;
//! for completion in ring.completion() {
//!     if completion.user_data() == 7 {
//!         if let Outcome::Fragment(fragment) = queue.outcome(completion) {
//!             refill.recycle([fragment])?;
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What the kernel copies
//!
//! Payload that arrives in host memory, because its packet came in through another queue or was
//! not split, is copied into a free buffer of the area, if the CPU can reach that: never into a
//! dma-buf, and then the receive ends with [`crate::ZcrxError::NoBufferToCopyInto`]. A completion does
//! not show this; [`Receiver::copied`] does. A queue without buffers copies nothing: packets are
//! lost, and sent again when buffers come back.
//!
//! Without a device everything is copied, and only recycling a buffer wakes a connection that found
//! none. [`Receiver::wait`] then reports [`Event::Starved`], and resumes the connection as soon as
//! fragments are recycled, even by another thread while it waits. In a ring of the caller's own it ends with
//! [`crate::ZcrxError::NoBufferToCopyInto`]: recycle, [`Queue::flush`], and receive again.
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
//! - `IORING_REGISTER_ZCRX_CTRL`, to flush the refill ring, to add areas and to arm notifications, and
//!   `IORING_REGISTER_QUERY`;
//! - the refill ring itself.

mod abi;
mod area;
mod config;
mod event;
mod features;
mod fragment;
mod queue;
mod receiver;
mod refill;
mod refusal;
mod starved;

pub use self::area::Area;
pub use self::config::{Config, Notification};
pub use self::event::{Connection, End, Event};
pub use self::features::Features;
pub use self::fragment::Fragment;
pub use self::queue::{Outcome, Queue};
pub use self::receiver::{InterfaceQueue, Receiver};
pub use self::refill::{Copied, Refill};
pub use crate::user_memory::UserMemory;
/// The crate whose rings and entries [`Queue`] takes.
pub use ::io_uring;

/// What is tried, for error messages.
const OPERATION: &str = "io_uring zero-copy receive";
const NODEV: &str = "io_uring zero-copy receive without a device";
