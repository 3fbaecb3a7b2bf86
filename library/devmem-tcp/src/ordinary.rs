// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receiving from an ordinary socket into mapped device memory: what works everywhere, and costs a copy by
//! the CPU. Nothing in this crate falls back to it by itself; use it explicitly if you want a fallback.
//!
//! The pieces are fragments as those of [`crate::rx`] and [`crate::zcrx`], so that what handles one kind
//! handles the others.

use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};

use vm_memory::volatile_memory::{Error as VolatileError, VolatileMemory};
use vm_memory::{MmapRegion, ReadVolatile};

use crate::dmabuf::CpuAccess;
use crate::error::{MemoryError, ReceiveError, SystemCall};
use crate::extent::Extent;
use crate::memory::{Memory, View};
use crate::user_memory::UserMemory;

/// Bytes of a fragment at most.
const BLOCK: usize = 64 << 10;

/// A piece of memory that holds payload, until it is recycled.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "its memory is not received into before it is recycled"]
pub struct Fragment {
    extent: Extent,
}

impl Deref for Fragment {
    type Target = Extent;

    fn deref(&self) -> &Extent {
        &self.extent
    }
}

/// Memory that is mapped: that of a dma-buf, or ordinary memory.
///
/// A dma-buf's exporter is told of what is received ([`Memory::begin_cpu_access`]). Behind a [`View`] alone there is
/// none to tell.
pub trait Mapped: std::fmt::Debug + Sync {
    #[doc(hidden)]
    fn region(&self, _: Token) -> &MmapRegion;

    #[doc(hidden)]
    fn begin_write(&self, _: Token) -> Result<(), MemoryError> {
        Ok(())
    }

    #[doc(hidden)]
    fn end_write(&self, _: Token) -> Result<(), MemoryError> {
        Ok(())
    }
}

/// Nobody else can make one: what is mapped is this crate's to know.
#[doc(hidden)]
#[derive(Debug)]
pub struct Token(());

impl Mapped for Memory {
    fn region(&self, token: Token) -> &MmapRegion {
        Mapped::region(self.view(), token)
    }

    fn begin_write(&self, _: Token) -> Result<(), MemoryError> {
        self.begin_cpu_access(CpuAccess::Write)
    }

    fn end_write(&self, _: Token) -> Result<(), MemoryError> {
        self.end_cpu_access(CpuAccess::Write)
    }
}

impl Mapped for View {
    fn region(&self, _: Token) -> &MmapRegion {
        self.region()
    }
}

impl Mapped for UserMemory {
    fn region(&self, _: Token) -> &MmapRegion {
        self.region()
    }
}

/// The receiving side of a connection: a TCP socket of any type, owned or borrowed.
#[derive(Debug)]
pub struct Receiver<'a, S> {
    socket: S,
    memory: &'a dyn Mapped,
    /// Offsets of blocks that hold nothing.
    free: Vec<usize>,
    block: usize,
}

impl<'a, S: AsFd> Receiver<'a, S> {
    /// Receives from a connected socket into `memory`, in fragments of 64 KiB at most. Several receivers of
    /// one memory would overwrite each other's fragments: give each its own.
    #[must_use]
    pub fn new(socket: S, memory: &'a impl Mapped) -> Self {
        let region = memory.region(Token(()));
        let block = BLOCK.min(region.size()).max(1);
        let blocks = region.size() / block;
        Self {
            socket,
            memory,
            free: (0..blocks).rev().map(|number| number * block).collect(),
            block,
        }
    }

    /// The socket: to poll it, to set a timeout, to send on it.
    #[must_use]
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Waits for data and takes what is there; none at the end of the stream.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::MemoryFull`] if all memory holds fragments that are not recycled,
    /// [`ReceiveError::WouldBlock`] on a non-blocking socket or after its timeout,
    /// [`ReceiveError::Memory`] if the exporter refuses the CPU access, [`ReceiveError::SystemCall`] when the connection
    /// is lost.
    pub fn receive(&mut self) -> Result<Option<Fragment>, ReceiveError> {
        let &offset = self.free.last().ok_or(ReceiveError::MemoryFull {
            len: self.memory.region(Token(())).size(),
        })?;
        self.memory.begin_write(Token(()))?;
        let read = self.read(offset);
        self.memory.end_write(Token(()))?;
        let len = read?;
        if len == 0 {
            return Ok(None);
        }
        self.free.pop();
        Ok(Some(Fragment {
            extent: Extent::new(offset as u64, len as u32),
        }))
    }

    /// Reads into the block at `offset`; returns how many bytes.
    fn read(&self, offset: usize) -> Result<usize, ReceiveError> {
        let outside = |error: VolatileError| std::io::Error::other(error);
        let region = self.memory.region(Token(()));
        let place = region.get_slice(offset, self.block).map_err(outside);
        let mut place = place.map_err(|error| SystemCall::new("a block of the memory", error))?;
        let mut socket = self.socket.as_fd();
        loop {
            match socket.read_volatile(&mut place) {
                Ok(len) => return Ok(len),
                Err(VolatileError::IOError(error)) => match error.kind() {
                    std::io::ErrorKind::Interrupted => {}
                    std::io::ErrorKind::WouldBlock => return Err(ReceiveError::WouldBlock),
                    _ => return Err(SystemCall::new("read", error).into()),
                },
                Err(error) => return Err(SystemCall::new("read", outside(error)).into()),
            }
        }
    }

    /// Recycles fragments, whose memory is received into again.
    pub fn recycle(&mut self, fragments: impl IntoIterator<Item = Fragment>) {
        let offsets = fragments
            .into_iter()
            .map(|fragment| fragment.offset() as usize);
        self.free.extend(offsets);
    }
}

impl<S: AsFd> AsFd for Receiver<'_, S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::sync::Mutex;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    /// Memory of `len` bytes, without a dma-buf.
    fn view(len: usize) -> View {
        let memfd = memfd_create("devmem-test", MemfdFlags::CLOEXEC).expect("memfd");
        ftruncate(&memfd, len as u64).expect("ftruncate");
        View::of(crate::memory::view(File::from(memfd), len).expect("map"))
    }

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let peer = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        (listener.accept().expect("accept").0, peer)
    }

    #[test]
    fn a_stream_arrives_whole_in_memory_that_is_far_smaller() {
        let view = view(2 * BLOCK);
        let (stream, mut peer) = connection();
        let sent: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        let copy = sent.clone();
        let sender = std::thread::spawn(move || peer.write_all(&copy).expect("write"));
        let mut receiver = Receiver::new(&stream, &view);
        let mut all = Vec::new();
        while let Some(fragment) = receiver.receive().expect("receive") {
            let start = all.len();
            all.resize(start + fragment.len() as usize, 0);
            fragment.read(&view, 0, &mut all[start..]).expect("inside");
            receiver.recycle([fragment]);
        }
        sender.join().expect("it sent all");
        assert_eq!(all, sent);
    }

    /// Memory of an exporter that writes down what it is told.
    #[derive(Debug)]
    struct Told(View, Mutex<Vec<&'static str>>);

    impl Mapped for Told {
        fn region(&self, token: Token) -> &MmapRegion {
            Mapped::region(&self.0, token)
        }

        fn begin_write(&self, _: Token) -> Result<(), MemoryError> {
            self.1.lock().expect("a lock").push("begin");
            Ok(())
        }

        fn end_write(&self, _: Token) -> Result<(), MemoryError> {
            let mut byte = [0];
            self.0.read_at(0, &mut byte)?;
            let written = if byte == [b'o'] {
                "end, written"
            } else {
                "end"
            };
            self.1.lock().expect("a lock").push(written);
            Ok(())
        }
    }

    #[test]
    fn the_exporter_is_told_before_and_after_the_cpu_writes_also_if_nothing_came() {
        let memory = Told(view(BLOCK), Mutex::default());
        let (stream, mut peer) = connection();
        stream.set_nonblocking(true).expect("a socket");
        let mut receiver = Receiver::new(&stream, &memory);
        let none = receiver.receive();
        assert!(matches!(none, Err(ReceiveError::WouldBlock)), "{none:?}");
        stream.set_nonblocking(false).expect("a socket");
        peer.write_all(b"one").expect("write");
        let _fragment = receiver.receive().expect("receive").expect("data");
        let told = memory.1.lock().expect("a lock");
        assert_eq!(*told, ["begin", "end", "begin", "end, written"]);
    }

    #[test]
    fn memory_that_is_full_is_an_error_until_something_is_recycled() {
        let view = view(BLOCK);
        let (stream, mut peer) = connection();
        peer.write_all(b"one").expect("write");
        let mut receiver = Receiver::new(&stream, &view);
        let first = receiver.receive().expect("receive").expect("data");
        assert!(matches!(
            receiver.receive(),
            Err(ReceiveError::MemoryFull { len: BLOCK })
        ));
        receiver.recycle([first]);
        peer.write_all(b"two").expect("write");
        let second = receiver.receive().expect("receive").expect("data");
        assert_eq!((second.offset(), second.len()), (0, 3));
    }
}
