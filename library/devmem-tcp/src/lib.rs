// SPDX-License-Identifier: MIT OR Apache-2.0

//! Device memory TCP for applications on Linux.
//!
//! Device memory TCP (Documentation/networking/devmem.rst in the kernel tree) moves TCP payload
//! between a NIC and memory that is not the host's: the NIC splits a received packet, its header
//! goes to the kernel, its payload goes straight to a dma-buf, and the application learns where.
//! Sending works the other way around. Neither direction copies payload.
//!
//! # Objectives
//!
//! 1. Every step that an application needs, from the dma-buf to the last completion, without C and
//!    without shell commands.
//! 2. Errors that name the precondition that does not hold, with the kernel's errno and words kept.
//! 3. Nothing that dangles: a binding lives as long as its value, a fragment is recycled by value,
//!    once, and device memory is copied in and out and never borrowed.
//! 4. Thin: one system call is one method. Nothing runs in the background.
//!
//! # Parts
//!
//! | module | what it is for |
//! |---|---|
//! | [`memory`], [`dmabuf`] | dma-bufs of any exporter, with the CPU's view and without |
//! | [`udmabuf`], [`heap`] | dma-bufs from ordinary memory, from a dma-heap |
//! | [`ethtool`] | header split, RSS, channels, features, statistics |
//! | [`netdev`] | binding dma-bufs; queues, NAPI instances, page pools, queue statistics |
//! | [`rx`] | receiving fragments and recycling them |
//! | [`tx`] | sending from a dma-buf and waiting for completions |
//! | [`zcrx`] | receiving through io_uring, without tokens (a feature, on by default) |
//! | [`ordinary`], [`way`] | receiving by copying, on request only; which way payload took |
//! | [`steering`] | setting an interface up so that flows reach a bound queue, and undoing it |
//! | `tokio` | both in async tasks, with back-pressure (a feature) |
//! | [`interface`], [`namespace`] | interfaces, network namespaces |
//!
//! # Receiving
//!
//! Linux 6.12 or newer, a NIC whose driver has queue management and header split, and
//! `CAP_NET_ADMIN` to set it up. The flow must reach the bound queue, and nothing else should: here
//! RSS sends everything to queue 1.
//!
//! ```no_run
//! use devmem_tcp::ethtool::{Ethtool, Indirection, RssChange};
//! use devmem_tcp::interface::Interface;
//! use devmem_tcp::netdev::RxBinding;
//! use devmem_tcp::rx::Receiver;
//! use devmem_tcp::udmabuf::Udmabuf;
//!
//! # fn main() -> devmem_tcp::Result<()> {
//! let interface = Interface::by_name("eth0")?;
//! let mut ethtool = Ethtool::new();
//! ethtool.split_headers(interface)?;
//! let to_queue_1 = Some(Indirection::Queues(vec![1]));
//! ethtool.set_rss(interface, &RssChange { indirection: to_queue_1, ..RssChange::default() })?;
//!
//! let memory = Udmabuf::new().create(64 << 20)?;
//! let _binding = RxBinding::to(interface).queue(1).bind(&memory)?;
//!
//! let listener = std::net::TcpListener::bind("[::]:5201").expect("a free port");
//! let (stream, _) = listener.accept().expect("a peer");
//! let mut receiver = Receiver::new(stream);
//! loop {
//!     let mut received = receiver.receive()?;
//!     if received.end_of_stream {
//!         break;
//!     }
//!     for fragment in &received.fragments {
//!         println!("{} bytes at {:#x} of the dma-buf", fragment.len(), fragment.offset());
//!     }
//!     // The NIC needs the memory back, else the connection stalls.
//!     receiver.recycle(received.fragments.drain(..))?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Sending
//!
//! Linux 6.16 or newer and a driver that can send memory that the CPU cannot read. No privilege is
//! needed.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use devmem_tcp::interface::Interface;
//! use devmem_tcp::netdev::TxBinding;
//! use devmem_tcp::tx::Sender;
//! use devmem_tcp::udmabuf::Udmabuf;
//!
//! # fn main() -> devmem_tcp::Result<()> {
//! let memory = Udmabuf::new().create(1 << 20)?;
//! memory.write_at(0, b"from the dma-buf")?;
//! let binding = TxBinding::to(Interface::by_name("eth0")?).bind(&memory)?;
//!
//! let stream = std::net::TcpStream::connect("192.0.2.1:5201").expect("a peer");
//! let mut sender = Sender::new(stream, binding)?;
//! sender.send_all(0, 16)?;
//! for done in sender.wait_all(Duration::from_secs(10))? {
//!     assert!(!done.copied);
//!     println!("{} bytes at {:#x} may be written again", done.len, done.offset);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Network namespaces
//!
//! A socket belongs to the network namespace of the thread that opens it. Clients
//! ([`netdev::Netdev`], [`ethtool::Ethtool`]) open theirs with the first request, functions with
//! each call; bindings take a [`namespace::Namespace`].
//!
//! # What is generated and what is not
//!
//! Attributes of the netlink families are encoded and decoded by `netlink-bindings` 0.3, which is
//! generated from the kernel's YNL specifications as of Linux 7.3. What it lacks as of 0.3.5, and
//! how this crate deals with it:
//!
//! - The commands of the ethtool family are wrong from the fourth on: the specification numbers
//!   requests and replies apart (`enum-model: directional`), the generator together. This crate sets
//!   them itself.
//! - The YNL type `uint` (4 or 8 bytes) is decoded as 4 bytes, which cuts counters above 4 GiB.
//!   This crate reads those attributes (queue statistics, page pools, NAPI timeouts) from the raw
//!   bytes.
//! - Getters of repeated attributes end at the first attribute of another kind. This crate walks
//!   the attributes instead.
//! - Statistics that a driver names itself are not part of the specification;
//!   [`ethtool::driver_stats`] uses the ioctl.
//!
//! Its companion `netlink-socket2` 0.3.5 is not used: it loses the errno of a list request that the
//! kernel refuses (it takes `NLMSG_DONE` for `NLMSG_ERROR`), reads messages into 8 KiB and cuts
//! longer ones, does not look at `NLM_F_DUMP_INTR`, and reports every failure to open a socket as
//! `EPERM`.

mod bytes;
mod cmsg;
mod completion;
pub mod dmabuf;
mod error;
pub mod ethtool;
mod extent;
mod fragment;
#[cfg(test)]
mod garbage;
pub mod heap;
pub mod interface;
mod link;
pub mod memory;
pub mod namespace;
pub mod netdev;
mod netlink;
mod operations;
pub mod ordinary;
pub mod pagemap;
mod received;
mod recycle;
pub mod rx;
mod sendmsg;
pub mod steering;
#[cfg(feature = "tokio")]
pub mod tokio;
pub mod tx;
pub mod udmabuf;
pub mod user_memory;
pub mod way;
#[cfg(feature = "zcrx")]
pub mod zcrx;

#[cfg(feature = "zcrx")]
pub use error::ZcrxError;
pub use error::{
    BadControlMessage, BindError, Error, MemoryError, OutOfRange, ReceiveError, Refusal,
    RequestError, Result, SendError, SteeringError, SystemCall,
};
