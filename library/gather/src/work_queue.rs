// SPDX-License-Identifier: MIT OR Apache-2.0

//! A work queue of the engine, `/dev/copy_engine<n>` (`drivers/copy_engine/copy_engine.h`).

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::PathBuf,
    time::Duration,
};

use devmem_tcp::memory::Memory;
use engine::{
    descriptor::{self, Completion, Descriptor, Operation},
    fragment::{self, Fragment},
};
use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
    ioctl::{self, NoArg, Setter, Updater, opcode},
};

use crate::{
    error::{Error, Result},
    portal::Portal,
};

/// Descriptors of a ring.
pub const SLOTS: u32 = 1 << LOG_SLOTS;
/// Fragments of a descriptor at most.
pub const LIST: usize = 256;
/// Bytes of memory that a ring and its lists take.
pub const CONTROL_BYTES: usize = SLOTS as usize * (descriptor::SIZE + LIST * fragment::SIZE);

const LOG_SLOTS: u32 = 6;
const GROUP: u8 = 0xdc;

/// `struct copy_engine_import`.
#[repr(C)]
struct Import {
    fd: i32,
    window: u32,
    size: u64,
}

/// `struct copy_engine_start`.
#[repr(C)]
struct Start {
    window: u32,
    size: u32,
    offset: u64,
}

/// `struct copy_engine_hold`.
#[repr(C)]
struct Hold {
    nic: u32,
    queue: u32,
}

/// `struct copy_engine_wait`.
#[repr(C)]
struct Wait {
    head: u32,
    timeout_ms: u32,
}

/// Memory that a queue reaches, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window(pub u8);

/// What the engine is to do with fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// What.
    pub operation: Operation,
    /// Where the fragments' sources are.
    pub source: Window,
    /// Where their destinations are.
    pub destination: Window,
    /// What [`Operation::Fill`] fills with.
    pub value: u32,
    /// Ring for what [`WorkQueue::arm`] has found, when it is done.
    pub signal: bool,
}

/// A TX queue of a NIC that an engine may ring for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxQueue {
    nic: u32,
    queue: u32,
}

impl TxQueue {
    /// A queue of the NIC at a PCI address, such as `0000:01:00.0`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], with `ENODEV` if its driver lets no other device ring.
    pub fn new(pci_address: &str, queue: u32) -> Result<Self> {
        let path = format!("/sys/bus/pci/devices/{pci_address}");
        let failed = |source| Error::Io {
            operation: "looking for the NIC's doorbells",
            source,
        };
        for entry in fs::read_dir(path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number = name.to_str().and_then(|name| name.split_once(".doorbell."));
            if let Some(nic) = number.and_then(|(_, number)| number.parse().ok()) {
                return Ok(Self { nic, queue });
            }
        }
        Err(failed(io::Error::from(Errno::NODEV)))
    }
}

/// A work queue. What it reaches is unmapped when it is dropped, once the engine is done with it.
#[derive(Debug)]
pub struct WorkQueue {
    node: OwnedFd,
    portal: Portal,
    /// The ring, then a list of fragments for each descriptor.
    control: Memory,
    /// Descriptors submitted, and waited for, since the start.
    submitted: u32,
    waited: u32,
}

impl WorkQueue {
    /// Opens a work queue of the engine with this number, counted from 0, whose ring is in `control`:
    /// [`CONTROL_BYTES`] of memory of which nothing else makes use.
    ///
    /// # Errors
    ///
    /// [`Error::NoEngine`], [`Error::Import`], [`Error::Small`].
    pub fn open(number: u32, control: Memory) -> Result<Self> {
        const START: ioctl::Opcode = opcode::write::<Start>(GROUP, 1);
        if control.len() < CONTROL_BYTES {
            return Err(Error::Small { len: control.len() });
        }
        let path = PathBuf::from(format!("/dev/copy_engine{number}"));
        let node = open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        let node = node.map_err(|errno| Error::NoEngine {
            path,
            source: errno.into(),
        })?;
        let portal = Portal::map(&node).map_err(|errno| failed("mmap of the portal", errno))?;
        let this = Self {
            node,
            portal,
            control,
            submitted: 0,
            waited: 0,
        };
        let Window(window) = import(&this.node, &this.control)?;
        let start = Start {
            window: window.into(),
            size: LOG_SLOTS,
            offset: 0,
        };
        // SAFETY: `COPY_ENGINE_IOC_START` reads a `struct copy_engine_start`, which `Start` is laid out as.
        unsafe { ioctl::ioctl(&this.node, Setter::<START, Start>::new(start)) }
            .map_err(|errno| failed("COPY_ENGINE_IOC_START", errno))?;
        Ok(this)
    }

    /// Lets the engine reach memory.
    ///
    /// # Errors
    ///
    /// [`Error::Import`].
    pub fn import(&mut self, memory: &impl AsFd) -> Result<Window> {
        import(&self.node, memory)
    }

    /// Has the engine do something with fragments, without a system call. Descriptors are executed one after
    /// the other.
    ///
    /// Once the driver is gone the process gets a `SIGBUS`, as from all registers that were mapped.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyFragments`], [`Error::Full`].
    pub fn submit(&mut self, command: &Command, fragments: &[Fragment]) -> Result<()> {
        if fragments.len() > LIST {
            let count = fragments.len();
            return Err(Error::TooManyFragments { count });
        }
        if self.free() == 0 {
            return Err(Error::Full);
        }
        let list = list(self.submitted);
        for (number, fragment) in fragments.iter().enumerate() {
            let at = list + number * fragment::SIZE;
            self.control.view().write_at(at, &fragment.encode())?;
        }
        let descriptor = Descriptor {
            operation: command.operation,
            interrupt: true,
            source_window: command.source.0,
            destination_window: command.destination.0,
            value: command.value,
            signal: command.signal,
            // The ring's.
            list_window: 0,
            fragments: fragments.len() as u32,
            list: list as u64,
            ..Descriptor::default()
        };
        self.control
            .view()
            .write_at(slot(self.submitted), &descriptor.encode())?;
        self.submitted = self.submitted.wrapping_add(1);
        self.portal.ring(self.submitted);
        Ok(())
    }

    /// Waits until the engine is done with all that was submitted. Returns what became of the descriptors
    /// since it was last called, in order.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], with `ETIMEDOUT` after `timeout`; [`Error::Failed`] for the first one that it could not
    /// do as it was to.
    pub fn wait(&mut self, timeout: Duration) -> Result<Vec<Completion>> {
        const WAIT: ioctl::Opcode = opcode::read_write::<Wait>(GROUP, 2);
        let mut wait = Wait {
            head: self.submitted,
            timeout_ms: timeout.as_millis().try_into().unwrap_or(u32::MAX),
        };
        // SAFETY: `COPY_ENGINE_IOC_WAIT` reads and writes a `struct copy_engine_wait`, which `Wait` is laid
        // out as.
        unsafe { ioctl::ioctl(&self.node, Updater::<WAIT, Wait>::new(&mut wait)) }
            .map_err(|errno| failed("COPY_ENGINE_IOC_WAIT", errno))?;
        let mut completions = Vec::new();
        while self.waited != self.submitted {
            let mut bytes = [0; descriptor::COMPLETION_SIZE];
            let at = slot(self.waited) + descriptor::COMPLETION;
            self.control.view().read_at(at, &mut bytes)?;
            self.waited = self.waited.wrapping_add(1);
            match Completion::decode(bytes) {
                Some(done) if !done.status.is_error() => completions.push(done),
                completion => return Err(Error::Failed { completion }),
            }
        }
        Ok(completions)
    }

    /// Has a TX queue keep what is sent on it from now on, for the engine to ring. After a second it is sent
    /// all the same.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], with `EPERM` for who is no administrator of networks, `EBUSY` if somebody else has the
    /// queue, `ENETDOWN`, `EXDEV` without a peer-to-peer path.
    pub fn hold(&mut self, queue: TxQueue) -> Result<()> {
        const HOLD: ioctl::Opcode = opcode::write::<Hold>(GROUP, 4);
        let TxQueue { nic, queue } = queue;
        // SAFETY: `COPY_ENGINE_IOC_HOLD` reads a `struct copy_engine_hold`, which `Hold` is laid out as.
        unsafe { ioctl::ioctl(&self.node, Setter::<HOLD, Hold>::new(Hold { nic, queue })) }
            .map_err(|errno| failed("COPY_ENGINE_IOC_HOLD", errno))
    }

    /// Has the next command with [`Command::signal`] ring for what the TX queue keeps by now.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], with `EAGAIN` if it keeps nothing yet, `ENOTCONN` if it was too long ago.
    pub fn arm(&mut self) -> Result<()> {
        const ARM: ioctl::Opcode = opcode::none(GROUP, 5);
        // SAFETY: `COPY_ENGINE_IOC_ARM` takes nothing.
        unsafe { ioctl::ioctl(&self.node, NoArg::<ARM>::new()) }
            .map_err(|errno| failed("COPY_ENGINE_IOC_ARM", errno))
    }

    /// How many descriptors the ring has room for.
    #[must_use]
    pub fn free(&self) -> u32 {
        SLOTS - self.submitted.wrapping_sub(self.waited)
    }
}

/// Where a descriptor is in the control memory, in bytes, by how many came before it.
fn slot(number: u32) -> usize {
    (number % SLOTS) as usize * descriptor::SIZE
}

/// Where the list of a descriptor is.
fn list(number: u32) -> usize {
    let ring = SLOTS as usize * descriptor::SIZE;
    ring + (number % SLOTS) as usize * LIST * fragment::SIZE
}

fn import(node: &OwnedFd, memory: &impl AsFd) -> Result<Window> {
    const IMPORT: ioctl::Opcode = opcode::read_write::<Import>(GROUP, 0);
    let mut import = Import {
        fd: memory.as_fd().as_raw_fd(),
        window: 0,
        size: 0,
    };
    // SAFETY: `COPY_ENGINE_IOC_IMPORT` reads and writes a `struct copy_engine_import`, which `Import` is
    // laid out as.
    unsafe { ioctl::ioctl(node, Updater::<IMPORT, Import>::new(&mut import)) }.map_err(
        |errno| Error::Import {
            source: errno.into(),
        },
    )?;
    // There are 16.
    Ok(Window(import.window as u8))
}

fn failed(operation: &'static str, errno: Errno) -> Error {
    Error::Io {
        operation,
        source: errno.into(),
    }
}
