// SPDX-License-Identifier: MIT OR Apache-2.0

//! QEMU's end of a device: a vfio-user server, on the crate `vfio_user`.
//!
//! What its version 0.1.7 lacks, and what is done about it here:
//!
//! - It serves one connection and returns. It is run again, with the device reset: that is hot plug.
//! - An error of the backend becomes an error reply with error 0, which QEMU takes for success, and comes
//!   even where no reply was asked for. So the backend here never fails: it logs, reads as ones, drops.
//! - It answers a read in two writes, header and data, which costs QEMU some 4 µs each. Nothing can be done
//!   about that from outside: the stream is its own.
//! - It panics at a malformed version message, and allocates what an access claims to be long. QEMU's are
//!   well-formed; the program ends at a panic, for all to see, and does not leave a guest hanging.
//! - It never sends commands of its own. Memory without a descriptor can't be accessed, then.
//! - Its client misreads whether a device can be reset, which concerns tests only.
//! - It logs through `log`, of which this program shows nothing.

use std::{
    fs::File,
    io,
    mem::size_of,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
};

use tracing::{debug, info, info_span, warn};
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_IRQ_INFO_NORESIZE, VFIO_IRQ_SET_ACTION_TRIGGER,
    VFIO_IRQ_SET_ACTION_TYPE_MASK, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_IRQ_SET_DATA_NONE,
    VFIO_IRQ_SET_DATA_TYPE_MASK, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_ERR_IRQ_INDEX,
    VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_NUM_IRQS, VFIO_PCI_NUM_REGIONS, VFIO_PCI_REQ_IRQ_INDEX,
    VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE, vfio_region_info,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, Error, IrqInfo, Server, ServerBackend, ServerRegion};

use crate::{Identity, Port, config};

/// Where QEMU connects to.
#[derive(Debug)]
pub enum Socket {
    /// A path, at which there must be nothing. It is there until the [`Server`] is dropped.
    Path(PathBuf),
    /// A socket that listens.
    Listening(OwnedFd),
}

/// Makes a server for a device. From then on QEMU can connect.
///
/// # Errors
///
/// When there is something at the path, or nothing can be.
pub fn listen(socket: Socket, identity: &Identity) -> Result<Server, Error> {
    let (interrupts, regions) = (interrupts(identity), regions(identity));
    match socket {
        Socket::Path(path) => Server::new(&path, true, interrupts, regions),
        Socket::Listening(fd) => Ok(Server::from_owned_fd(fd, true, interrupts, regions)),
    }
}

/// Serves a device to one QEMU after the other, in a thread.
///
/// # Errors
///
/// When there is no thread.
pub fn serve(port: Arc<Port>, server: Server, name: String) -> io::Result<JoinHandle<()>> {
    let builder = thread::Builder::new().name(name.clone());
    builder.spawn(move || {
        let _entered = info_span!("device", name).entered();
        let mut backend = Backend(port);
        loop {
            let result = server.run(&mut backend);
            backend.0.disconnect();
            match result {
                Ok(()) => info!("QEMU is gone"),
                Err(error @ Error::SocketAccept(_)) => return warn!(%error, "QEMU can't connect"),
                Err(error) => warn!(%error, "QEMU is gone"),
            }
        }
    })
}

/// How many interrupts of each kind there are: messages, and one each that tells of an error and of a
/// request to let the device go, without which QEMU complains.
fn interrupts(identity: &Identity) -> Vec<IrqInfo> {
    let count = |index| match index {
        VFIO_PCI_MSIX_IRQ_INDEX => u32::from(identity.vectors),
        VFIO_PCI_ERR_IRQ_INDEX | VFIO_PCI_REQ_IRQ_INDEX => 1,
        _ => 0,
    };
    (0..VFIO_PCI_NUM_IRQS)
        .map(|index| IrqInfo {
            index,
            flags: VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE,
            count: count(index),
        })
        .collect()
}

/// None is to be mapped by QEMU: that would make writes to the others wait for an answer.
fn regions(identity: &Identity) -> Vec<ServerRegion> {
    let size = |index| match index {
        VFIO_PCI_CONFIG_REGION_INDEX => config::SIZE as u64,
        bar if bar == identity.registers => identity.registers_size.into(),
        bar if bar == identity.msix => config::MSIX_BAR_SIZE.into(),
        _ => 0,
    };
    (0..VFIO_PCI_NUM_REGIONS)
        .map(|index| ServerRegion {
            region_info: vfio_region_info {
                argsz: size_of::<vfio_region_info>() as u32,
                flags: match size(index) {
                    0 => 0,
                    _ => VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE,
                },
                index,
                cap_offset: 0,
                size: size(index),
                offset: 0,
            },
            sparse_areas: Vec::new(),
            mmap_fd: None,
        })
        .collect()
}

/// What QEMU asks for. It never fails (see above).
struct Backend(Arc<Port>);

impl ServerBackend for Backend {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let identity = self.0.identity();
        match region {
            VFIO_PCI_CONFIG_REGION_INDEX => self.0.read_config(offset, data),
            bar if bar == identity.registers => self.0.read_registers(offset, data),
            bar if bar == identity.msix => self.0.read_msix(offset, data),
            _ => data.fill(0xff),
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        match region {
            VFIO_PCI_CONFIG_REGION_INDEX => self.0.write_config(offset, data),
            bar if bar == self.0.identity().registers => self.0.write_registers(offset, data),
            _ => debug!(region, offset, "nothing is written"),
        }
        Ok(())
    }

    fn dma_map(
        &mut self,
        flags: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        fd: Option<File>,
    ) -> io::Result<()> {
        let shared = fd.is_some();
        debug!(address, size, offset, ?flags, shared, "memory comes");
        let map = |slot: &mut crate::port::Slot| slot.dma.map(address, size, fd, offset, flags);
        if let Err(error) = self.0.with_slot(map) {
            warn!(%error, "the device does not reach memory");
        }
        Ok(())
    }

    fn dma_unmap(&mut self, flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        debug!(address, size, ?flags, "memory goes");
        self.0.with_slot(|slot| {
            if flags.contains(DmaUnmapFlags::UNMAP_ALL) {
                slot.dma.unmap_all();
            } else {
                slot.dma.unmap(address, size);
            }
        });
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        info!("QEMU resets the device");
        self.0.reset();
        Ok(())
    }

    fn set_irqs(
        &mut self,
        index: u32,
        flags: u32,
        start: u32,
        count: u32,
        fds: Vec<File>,
    ) -> io::Result<()> {
        debug!(index, flags, start, count, fds = fds.len(), "interrupts");
        // Nothing ever goes wrong, nor is the device to be let go. Masks are QEMU's.
        if index != VFIO_PCI_MSIX_IRQ_INDEX
            || flags & VFIO_IRQ_SET_ACTION_TYPE_MASK != VFIO_IRQ_SET_ACTION_TRIGGER
        {
            return Ok(());
        }
        self.0.with_slot(|slot| {
            let interrupts = &mut slot.interrupts;
            match (flags & VFIO_IRQ_SET_DATA_TYPE_MASK, count) {
                (VFIO_IRQ_SET_DATA_NONE, 0) => interrupts.take_events(0, u32::MAX),
                (VFIO_IRQ_SET_DATA_NONE, _) => interrupts.send_all(start, count),
                (VFIO_IRQ_SET_DATA_EVENTFD, _) if fds.is_empty() => {
                    interrupts.take_events(start, count);
                }
                (VFIO_IRQ_SET_DATA_EVENTFD, _) => interrupts.set_events(start, fds),
                _ => {}
            }
        });
        Ok(())
    }
}
