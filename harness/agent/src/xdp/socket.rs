// SPDX-License-Identifier: MIT OR Apache-2.0

//! XDP sockets: memory in chunks, and the four rings that pass chunks to the driver and back
//! (Documentation/networking/af_xdp.rst of the kernel).

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result, ensure};
use rustix::{
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap},
    net::{
        AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with, sockopt,
        xdp::{
            SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
            XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions,
            XdpOptionsFlags, XdpRingFlags, XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
        },
    },
};

/// Entries of each ring.
const ENTRIES: u32 = 256;

/// Memory that is mapped as long as this lives.
struct Mapping {
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: Mapped memory may be used from any thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// New memory, all zeroes.
    fn anonymous(bytes: usize) -> Result<Self> {
        // SAFETY: New memory anywhere.
        let address = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::POPULATE,
            )
        }
        .context("mapping memory")?;
        Self::new(address, bytes)
    }

    /// A ring of a socket.
    fn ring(socket: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<Self> {
        // SAFETY: New memory anywhere, which the kernel shares.
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                socket,
                offset,
            )
        }
        .context("mapping a ring")?;
        Self::new(address, bytes)
    }

    fn new(address: *mut std::ffi::c_void, bytes: usize) -> Result<Self> {
        let address = NonNull::new(address.cast()).context("memory at address 0")?;
        Ok(Self { address, bytes })
    }

    /// A pointer `offset` bytes from its start.
    fn at<T>(&self, offset: u64) -> Result<NonNull<T>> {
        let offset = usize::try_from(offset)?;
        ensure!(offset < self.bytes, "a ring's field lies behind the ring");
        // SAFETY: Within the mapping.
        Ok(unsafe { self.address.add(offset) }.cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: Mapped by `new`'s callers, and owned by no one else.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.bytes) };
    }
}

/// One side of a ring of `T`.
struct Ring<T> {
    /// Keeps the memory that the others point to.
    _mapping: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
}

// SAFETY: The kernel's side is atomic; this side is used through `&mut self`.
unsafe impl<T> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Sets a ring's size and maps it.
    fn new<'s>(
        socket: BorrowedFd<'s>,
        set_size: impl FnOnce(BorrowedFd<'s>, u32) -> rustix::io::Result<()>,
        page: u64,
        offsets: &XdpRingOffset,
    ) -> Result<Self> {
        set_size(socket, ENTRIES).context("making a ring")?;
        let flags = offsets.flags.context("the kernel's rings have no flags")?;
        let bytes = usize::try_from(offsets.desc)? + ENTRIES as usize * size_of::<T>();
        let mapping = Mapping::ring(socket, page, bytes)?;
        Ok(Self {
            producer: mapping.at(offsets.producer)?,
            consumer: mapping.at(offsets.consumer)?,
            flags: mapping.at(flags)?,
            entries: mapping.at(offsets.desc)?,
            _mapping: mapping,
        })
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: The ring has `ENTRIES` entries, a power of two.
        unsafe { self.entries.add((index & (ENTRIES - 1)) as usize) }
    }

    /// Puts an entry on the ring; false if there is no room.
    fn produce(&mut self, entry: T) -> bool {
        // SAFETY: Both are in the mapping.
        let (producer, consumer) = unsafe { (self.producer.as_ref(), self.consumer.as_ref()) };
        let index = producer.load(Ordering::Relaxed);
        if index.wrapping_sub(consumer.load(Ordering::Acquire)) >= ENTRIES {
            return false;
        }
        // SAFETY: The kernel does not read it before the producer index is advanced.
        unsafe { self.entry(index).write_volatile(entry) };
        producer.store(index.wrapping_add(1), Ordering::Release);
        true
    }

    /// Takes an entry from the ring.
    fn consume(&mut self) -> Option<T> {
        // SAFETY: As above.
        let (producer, consumer) = unsafe { (self.producer.as_ref(), self.consumer.as_ref()) };
        let index = consumer.load(Ordering::Relaxed);
        if producer.load(Ordering::Acquire) == index {
            return None;
        }
        // SAFETY: The kernel has written it.
        let entry = unsafe { self.entry(index).read_volatile() };
        consumer.store(index.wrapping_add(1), Ordering::Release);
        Some(entry)
    }

    /// Whether the kernel needs a wakeup.
    fn needs_wakeup(&self) -> bool {
        // SAFETY: In the mapping.
        let flags = unsafe { self.flags.as_ref() }.load(Ordering::Relaxed);
        flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }
}

/// How a socket is bound.
pub(crate) struct Binding {
    /// The interface.
    pub(crate) interface: u32,
    /// Its queue.
    pub(crate) queue: u32,
    /// Whether frames are copied, and the kernel asks for wakeups.
    pub(crate) flags: SocketAddrXdpFlags,
    /// Bytes of a chunk.
    pub(crate) chunk: u32,
    /// Chunks.
    pub(crate) chunks: u32,
}

/// A socket with its memory.
pub(crate) struct XdpSocket {
    // The socket is closed before its memory is unmapped.
    socket: OwnedFd,
    rx: Ring<XdpDesc>,
    tx: Ring<XdpDesc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    memory: Mapping,
}

impl XdpSocket {
    /// Makes a socket and binds it. Fails with the kernel's errno.
    pub(crate) fn bind(binding: &Binding) -> Result<Self> {
        let memory = Mapping::anonymous(binding.chunk as usize * binding.chunks as usize)?;
        let (family, flags) = (AddressFamily::XDP, SocketFlags::CLOEXEC);
        let socket =
            socket_with(family, SocketType::RAW, flags, None).context("creating an XDP socket")?;
        let register = XdpUmemReg {
            addr: memory.address.as_ptr() as u64,
            len: memory.bytes as u64,
            chunk_size: binding.chunk,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, register).context("registering memory")?;
        let offsets = sockopt::xdp_mmap_offsets(&socket).context("asking an XDP socket")?;
        let at = socket.as_fd();
        let set_fill = sockopt::set_xdp_umem_fill_ring_size;
        let set_completion = sockopt::set_xdp_umem_completion_ring_size;
        let completion = XDP_UMEM_PGOFF_COMPLETION_RING;
        let this = Self {
            rx: Ring::new(
                at,
                sockopt::set_xdp_rx_ring_size,
                XDP_PGOFF_RX_RING,
                &offsets.rx,
            )?,
            tx: Ring::new(
                at,
                sockopt::set_xdp_tx_ring_size,
                XDP_PGOFF_TX_RING,
                &offsets.tx,
            )?,
            fill: Ring::new(at, set_fill, XDP_UMEM_PGOFF_FILL_RING, &offsets.fr)?,
            completion: Ring::new(at, set_completion, completion, &offsets.cr)?,
            socket,
            memory,
        };
        let address = SocketAddrXdp::new(binding.flags, binding.interface, binding.queue);
        bind(&this.socket, &address).context("binding an XDP socket")?;
        Ok(this)
    }

    /// Whether the kernel reports zero-copy mode.
    pub(crate) fn zero_copy(&self) -> Result<bool> {
        let options = sockopt::xdp_options(&self.socket).context("asking an XDP socket")?;
        Ok(options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    /// Posts a chunk for the driver to receive into; false if there is no room.
    pub(crate) fn fill(&mut self, chunk: u64) -> bool {
        self.fill.produce(chunk)
    }

    /// A received frame: its offset in the memory, and its length.
    pub(crate) fn receive(&mut self) -> Option<(u64, u32)> {
        self.rx.consume().map(|desc| (desc.addr, desc.len))
    }

    /// Queues a frame for the driver to send; false if there is no room.
    pub(crate) fn send(&mut self, address: u64, len: u32) -> bool {
        self.tx.produce(XdpDesc {
            addr: address,
            len,
            options: XdpDescOptions::empty(),
        })
    }

    /// The offset of a frame that was sent.
    pub(crate) fn complete(&mut self) -> Option<u64> {
        self.completion.consume()
    }

    /// Makes the driver send, if it waits for a wakeup.
    pub(crate) fn kick(&self, need_wakeup: bool) -> Result<()> {
        if need_wakeup && !self.tx.needs_wakeup() {
            return Ok(());
        }
        match send(&self.socket, &[], SendFlags::DONTWAIT) {
            // The interface is down, or sending is already under way.
            Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::NETDOWN) => Ok(()),
            Err(error) => Err(error).context("having the driver send"),
        }
    }

    /// Swaps the Ethernet addresses of a frame.
    pub(crate) fn turn(&mut self, address: u64) -> Result<()> {
        let frame = usize::try_from(address)?;
        ensure!(
            frame + 12 <= self.memory.bytes,
            "a frame begins behind the memory"
        );
        // SAFETY: In bounds. The kernel has handed over the frame.
        let addresses =
            unsafe { std::slice::from_raw_parts_mut(self.memory.address.as_ptr().add(frame), 12) };
        let (to, from) = addresses.split_at_mut(6);
        to.swap_with_slice(from);
        Ok(())
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
