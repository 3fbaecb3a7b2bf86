// SPDX-License-Identifier: MIT OR Apache-2.0

//! XDP sockets: memory in chunks, and the four rings that pass chunks to the driver and back
//! (Documentation/networking/af_xdp.rst of the kernel).

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result, ensure};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::sockopt;

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
    fn new(
        socket: BorrowedFd<'_>,
        option: libc::c_int,
        page: u64,
        offsets: &libc::xdp_ring_offset,
    ) -> Result<Self> {
        set(socket, option, &ENTRIES).context("making a ring")?;
        let bytes = usize::try_from(offsets.desc)? + ENTRIES as usize * size_of::<T>();
        let mapping = Mapping::ring(socket, page, bytes)?;
        Ok(Self {
            producer: mapping.at(offsets.producer)?,
            consumer: mapping.at(offsets.consumer)?,
            flags: mapping.at(offsets.flags)?,
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
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// How a socket is bound.
pub(crate) struct Binding {
    /// The interface.
    pub(crate) interface: u32,
    /// Its queue.
    pub(crate) queue: u32,
    /// `XDP_COPY`, `XDP_ZEROCOPY`, `XDP_USE_NEED_WAKEUP`.
    pub(crate) flags: u16,
    /// Bytes of a chunk.
    pub(crate) chunk: u32,
    /// Chunks.
    pub(crate) chunks: u32,
}

/// A socket with its memory.
pub(crate) struct XdpSocket {
    // The socket is closed before its memory is unmapped.
    socket: OwnedFd,
    rx: Ring<libc::xdp_desc>,
    tx: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    memory: Mapping,
}

impl XdpSocket {
    /// Makes a socket and binds it. Fails with the kernel's errno.
    pub(crate) fn bind(binding: &Binding) -> Result<Self> {
        let memory = Mapping::anonymous(binding.chunk as usize * binding.chunks as usize)?;
        // SAFETY: Makes a file descriptor.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error()).context("creating an XDP socket");
        }
        // SAFETY: Just created, and owned by no one else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let register = libc::xdp_umem_reg {
            addr: memory.address.as_ptr() as u64,
            len: memory.bytes as u64,
            chunk_size: binding.chunk,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(socket.as_fd(), libc::XDP_UMEM_REG, &register).context("registering memory")?;
        let offsets: libc::xdp_mmap_offsets = get(socket.as_fd(), libc::XDP_MMAP_OFFSETS)?;
        let at = socket.as_fd();
        let (rx, tx) = (
            libc::XDP_PGOFF_RX_RING as u64,
            libc::XDP_PGOFF_TX_RING as u64,
        );
        let (fill, completion) = (
            libc::XDP_UMEM_PGOFF_FILL_RING,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING,
        );
        let this = Self {
            rx: Ring::new(at, libc::XDP_RX_RING, rx, &offsets.rx)?,
            tx: Ring::new(at, libc::XDP_TX_RING, tx, &offsets.tx)?,
            fill: Ring::new(at, libc::XDP_UMEM_FILL_RING, fill, &offsets.fr)?,
            completion: Ring::new(at, libc::XDP_UMEM_COMPLETION_RING, completion, &offsets.cr)?,
            socket,
            memory,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: binding.flags,
            sxdp_ifindex: binding.interface,
            sxdp_queue_id: binding.queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: The address outlives the call.
        let bound = unsafe {
            libc::bind(
                this.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        if bound != 0 {
            return Err(io::Error::last_os_error()).context("binding an XDP socket");
        }
        Ok(this)
    }

    /// Whether the kernel reports zero-copy mode.
    pub(crate) fn zero_copy(&self) -> Result<bool> {
        let options: libc::xdp_options = get(self.socket.as_fd(), libc::XDP_OPTIONS)?;
        Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
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
        self.tx.produce(libc::xdp_desc {
            addr: address,
            len,
            options: 0,
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
        // SAFETY: Sends nothing: there is neither data nor an address.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            _ if sent >= 0 => Ok(()),
            // The interface is down, or sending is already under way.
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::ENETDOWN) => Ok(()),
            _ => Err(error).context("having the driver send"),
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

fn set<T>(socket: BorrowedFd<'_>, option: libc::c_int, value: &T) -> io::Result<()> {
    sockopt::set(&socket, libc::SOL_XDP, option, value)
}

fn get<T>(socket: BorrowedFd<'_>, option: libc::c_int) -> Result<T> {
    // SAFETY: Callers ask for structures of integers, for which zeros are valid.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: The kernel writes at most `length` bytes to `value`; both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()).context("asking an XDP socket"),
    }
}
