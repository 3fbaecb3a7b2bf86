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

pub mod ethtool;
pub mod frame;
pub mod job;
pub mod measure;
pub mod message;
pub mod net;
pub mod payload;
pub mod program;
pub mod request;
pub mod snmp;
pub mod xdp;
pub mod zcrx;

pub use job::{
    Binding, Command, CopySink, DevmemRelay, DevmemSink, DevmemSource, Event, Fill, Job, JobSpec,
    Memory, Release, TcpSink, TcpSource, UdpSink, UdpSource,
};
pub use measure::{MeasuredSink, MeasuredSource, PacedWire, Restarts};
pub use message::{Call, Failure, JobId, Message};
pub use net::Ns;
pub use payload::Payload;
pub use program::Program;
pub use request::{Join, Query, Request, StartJob, Tell};
pub use xdp::{XdpAction, XdpProgram};
pub use zcrx::{ZcrxMemory, ZcrxSink};

/// Name of the virtio-serial port that carries the messages.
pub const PORT_NAME: &str = "nobounce.control";

/// Number that both sides compare at the start; raised with every change of a message.
///
/// The agent sits in an initramfs that may be older than the host's program.
pub const VERSION: u32 = 10;
