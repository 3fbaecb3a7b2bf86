// SPDX-License-Identifier: MIT OR Apache-2.0

//! A guest in QEMU, seen from the host.
//!
//! [`Images`] says what to boot, [`Machine`] describes the hardware and boots them on it, [`Guest`]
//! is the running guest: its agent answers typed requests and runs jobs, its RAM and its
//! accelerator's memory ([`GuestMemory`]) can be read from outside and searched for what should not
//! be there ([`traces`]), its kernel's log is scanned for complaints when it ends
//! ([`Guest::finish`]). This crate knows how to run a guest and nothing about what is tested in it.
//!
//! ```no_run
//! use protocol::{Ns, link::ListInterfaces};
//! use vm::{Images, Machine};
//!
//! # fn main() -> Result<(), vm::Error> {
//! let guest = Machine::new().boot(&Images::from_env()?, "example")?;
//! for interface in guest.call(ListInterfaces { ns: Ns::Local })? {
//!     println!("{} {}", interface.name, interface.mac);
//! }
//! guest.finish()?;
//! # Ok(())
//! # }
//! ```

mod cables;
mod channel;
pub mod counter;
mod device;
mod dmabuf;
mod error;
mod guest;
mod hypervisor;
mod images;
mod job;
mod leaks;
mod link;
mod lock;
mod machine;
mod memory;
mod process;
mod qemu;
mod qmp;
mod run_dir;
pub mod scan;
mod silence;
mod snapshot;
mod topology;
pub mod traces;
mod tsc;
mod wire;

pub use cables::Cables;
pub use device::OUR_NIC;
pub use dmabuf::DmaBufView;
pub use error::{Error, Logs, Result};
pub use guest::{Guest, Verdict};
pub use hypervisor::{Hypervisor, kvm_works};
pub use images::{ENV, Images, QemuCommand};
pub use job::JobHandle;
pub use link::Link;
pub use machine::{Export, Machine};
pub use memory::GuestMemory;
pub use topology::{NicBus, Topology};
pub use wire::{End, Wire};
