// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the host and the guest say to each other.
//!
//! The host sends [`Call`]s and the agent in the guest answers each with one
//! [`Message::Reply`], in any order. Work that goes on after its reply is a *job*: [`StartJob`]
//! sets it up, [`Event`]s report what it does, [`Tell`] steers it and [`Join`] fetches its
//! outcome. Messages are lines of JSON ([`frame`]) over a virtio-serial port ([`PORT_NAME`]).
//!
//! Which answer belongs to which question is a matter of types: every request implements
//! [`Query`], every job [`JobSpec`].

pub mod agent;
mod any_of;
pub mod bytes;
pub mod devmem;
pub mod engine;
pub mod ethtool;
pub mod flow_rules;
pub mod frame;
pub mod job;
pub mod kernel;
pub mod link;
pub mod measure;
pub mod memory;
pub mod message;
pub mod net;
pub mod netdev;
pub mod pci;
pub mod program;
pub mod request;
pub mod rings;
pub mod rss;
pub mod snmp;
pub mod tcp;
pub mod timestamp;
pub mod traffic;
pub mod udp;
pub mod xdp;
pub mod xsk;
pub mod zcrx;

pub use devmem::{
    Binding, DevmemGather, DevmemRelay, DevmemSignalled, DevmemSink, DevmemSource, Fill,
};
pub use job::{Command, Event, Job, JobSpec, Join, StartJob, Tell};
pub use measure::{MeasuredSink, MeasuredSource, PacedWire, Restarts};
pub use memory::{Memory, Release};
pub use message::{Call, Failure, JobId, Message};
pub use net::Ns;
pub use payload::{Mismatch, Payload};
pub use program::Program;
pub use request::{Query, Request};
pub use tcp::{CopySink, TcpSink, TcpSource};
pub use udp::{UdpSink, UdpSource};
pub use xdp::{XdpAction, XdpProgram};
pub use xsk::XdpSocket;
pub use zcrx::{ZcrxMemory, ZcrxSink};

/// Name of the virtio-serial port that carries the messages.
pub const PORT_NAME: &str = "nobounce.control";

/// Number that both sides compare at the start; raised with every change of a message.
///
/// The agent sits in an initramfs that may be older than the host's program.
pub const VERSION: u32 = 20;
