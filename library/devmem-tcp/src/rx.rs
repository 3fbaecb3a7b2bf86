// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receiving from a connection whose queue is bound to a dma-buf: `recvmsg(MSG_SOCK_DEVMEM)`
//! (`tcp_recvmsg_dmabuf` in net/ipv4/tcp.c).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::cmsg;
use crate::error::{ReceiveError, Refusal, SystemCall};
pub use crate::extent::Extent;
pub use crate::fragment::{Fragment, RawFragment};
use crate::received::DMABUF_CMSG;
pub use crate::received::{Piece, Received};
pub use crate::recycle::Recycler;
use crate::recycle::cookie;

/// include/linux/socket.h; the C library does not know it yet.
const MSG_SOCK_DEVMEM: i32 = 0x200_0000;

/// How much one call may receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Most bytes, those in device memory included.
    pub bytes: usize,
    /// Most pieces. A piece is at most a packet, and at most a receive buffer of the NIC.
    pub pieces: usize,
}

impl Default for Capacity {
    /// 1 MiB in 1024 pieces.
    fn default() -> Self {
        Self {
            bytes: 1 << 20,
            pieces: 1024,
        }
    }
}

/// The receiving side of a connection: a TCP socket of any type, owned or borrowed.
///
/// Closing the connection recycles all fragments that are left.
#[derive(Debug)]
pub struct Receiver<S> {
    socket: S,
    cookie: u64,
    data: Vec<u8>,
    control: Vec<u8>,
    recycler: Recycler,
}

impl<S: AsFd> Receiver<S> {
    /// Receives from a connected socket, with the default [`Capacity`].
    #[must_use]
    pub fn new(socket: S) -> Self {
        Self::with_capacity(socket, Capacity::default())
    }

    /// Receives from a connected socket.
    #[must_use]
    pub fn with_capacity(socket: S, capacity: Capacity) -> Self {
        Self {
            cookie: cookie(socket.as_fd()),
            socket,
            data: vec![0; capacity.bytes.max(1)],
            control: vec![0; capacity.pieces.max(1) * cmsg::space(DMABUF_CMSG)],
            recycler: Recycler::new(),
        }
    }

    /// The socket: to poll it, to set a timeout, to send on it.
    #[must_use]
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// What tells its socket from all others.
    #[cfg(feature = "tokio")]
    pub(crate) fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Gives up the receiver for its socket.
    #[must_use]
    pub fn into_socket(self) -> S {
        self.socket
    }

    /// Waits for data and takes what is there. As [`Receiver::receive_into`], in fresh memory.
    ///
    /// # Errors
    ///
    /// As [`Receiver::receive_into`].
    pub fn receive(&mut self) -> Result<Received, ReceiveError> {
        let mut received = Received::default();
        self.receive_into(&mut received)?;
        Ok(received)
    }

    /// Waits for data and takes what is there into `received`, whose former contents are gone and
    /// whose memory is used again.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::WouldBlock`] on a non-blocking socket or after its timeout; [`ReceiveError::MixedSegment`]
    /// and [`ReceiveError::SegmentUnreadable`] when the flow is lost; [`ReceiveError::SystemCall`] when the
    /// connection is.
    pub fn receive_into(&mut self, received: &mut Received) -> Result<(), ReceiveError> {
        self.receive_at_most(usize::MAX, 0, received)
    }

    /// As [`Receiver::receive_into`], at most `pieces`, which is 1 at least, and with more `flags`.
    pub(crate) fn receive_at_most(
        &mut self,
        pieces: usize,
        flags: i32,
        received: &mut Received,
    ) -> Result<(), ReceiveError> {
        // The kernel stops where it has no room to describe a piece, and keeps the rest.
        let room = pieces.saturating_mul(cmsg::space(DMABUF_CMSG));
        let room = room.min(self.control.len());
        let (bytes, control) = loop {
            match receive_message(
                self.socket.as_fd(),
                &mut self.data,
                &mut self.control[..room],
                MSG_SOCK_DEVMEM | flags,
            ) {
                Ok(lengths) => break lengths,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(refused(error)),
            }
        };
        Ok(received.fill(self.cookie, bytes, &self.control[..control], &self.data)?)
    }

    /// Recycles fragments, in batches that the kernel takes.
    ///
    /// # Errors
    ///
    /// As [`Recycler::recycle`].
    pub fn recycle(
        &mut self,
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Result<(), ReceiveError> {
        let socket = self.socket.as_fd();
        self.recycler.recycle_to(socket, self.cookie, fragments)
    }
}

impl<S: AsFd> AsFd for Receiver<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What an errno of `recvmsg(MSG_SOCK_DEVMEM)` means.
fn refused(error: std::io::Error) -> ReceiveError {
    let refusal = |errno| Refusal::from_errno(errno);
    match error.raw_os_error() {
        Some(libc::EAGAIN) => ReceiveError::WouldBlock,
        // A segment with host memory among its fragments, or one that is not from a dma-buf.
        Some(libc::ENODEV) => ReceiveError::MixedSegment {
            refusal: refusal(libc::ENODEV),
        },
        // A segment that ends before its length, or memory that the process may not write.
        Some(libc::EFAULT) => ReceiveError::SegmentUnreadable {
            refusal: refusal(libc::EFAULT),
        },
        _ => SystemCall::new("recvmsg(MSG_SOCK_DEVMEM)", error).into(),
    }
}

/// `recvmsg` with one data buffer; returns the bytes received and the bytes of control messages.
pub(crate) fn receive_message(
    socket: BorrowedFd<'_>,
    data: &mut [u8],
    control: &mut [u8],
    flags: i32,
) -> std::io::Result<(usize, usize)> {
    let mut buffer = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    // SAFETY: `msghdr` is plain old data, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut buffer;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = control.len() as _;
    // SAFETY: `message` points to one iovec and to a control buffer, with their lengths; all
    // outlive the call.
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let bytes = usize::try_from(bytes).map_err(|_| std::io::Error::last_os_error())?;
    Ok((bytes, message.msg_controllen as usize))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn each_errno_of_a_lost_flow_has_its_own_error() {
        let meaning = |errno| refused(std::io::Error::from_raw_os_error(errno));
        assert!(matches!(meaning(libc::EAGAIN), ReceiveError::WouldBlock));
        assert!(matches!(
            meaning(libc::ENODEV),
            ReceiveError::MixedSegment { .. }
        ));
        assert!(matches!(
            meaning(libc::EFAULT),
            ReceiveError::SegmentUnreadable { .. }
        ));
        assert_eq!(meaning(libc::ECONNRESET).errno(), Some(libc::ECONNRESET));
    }

    #[test]
    fn an_ordinary_connection_delivers_unsteered_bytes_and_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let mut peer =
            TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        let (stream, _) = listener.accept().expect("accept");
        peer.write_all(b"through the loopback").expect("write");
        drop(peer);

        let mut receiver = Receiver::new(stream);
        let mut all = Vec::new();
        loop {
            let received = receiver.receive().expect("receive");
            if received.end_of_stream {
                break;
            }
            assert_eq!(received.unsteered, received.linear.len());
            all.extend(received.linear);
        }
        assert_eq!(all, b"through the loopback");
    }
}
