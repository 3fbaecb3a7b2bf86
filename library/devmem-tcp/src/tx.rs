// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sending from a dma-buf: `sendmsg(MSG_ZEROCOPY)` with an `SCM_DEVMEM_DMABUF` control message, and
//! its completions (`tcp_sendmsg_locked` in net/ipv4/tcp.c, `net_devmem_get_binding` in
//! net/core/devmem.c).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, ipproto, shutdown, sockopt};

use crate::cmsg::{self, Message};
pub use crate::completion::Completion;
use crate::completion::{InFlight, Notice};
use crate::error::{OutOfRange, SendError, SystemCall};
use crate::netdev::TxBinding;
use crate::rx::receive_message;
use crate::sendmsg::{refused, send_message};

/// How long to wait before looking again at a socket whose `poll` would not wait.
const HANG_UP_PAUSE: Duration = Duration::from_millis(1);

/// The sending side of a connection: a TCP socket of any type, owned or borrowed.
///
/// Bytes of the dma-buf that were sent must not change before their completion: retransmissions
/// read them again.
#[derive(Debug)]
pub struct Sender<S> {
    socket: S,
    binding: Arc<TxBinding>,
    control: Vec<u8>,
    in_flight: InFlight,
    completed: VecDeque<Completion>,
}

impl<S: AsFd> Sender<S> {
    /// Sends from the dma-buf of `binding` through a connected socket, whose route must leave
    /// through the binding's interface.
    ///
    /// The socket must not have sent with `MSG_ZEROCOPY` before: completions are counted from here
    /// on.
    ///
    /// # Errors
    ///
    /// [`SendError::NotTcp`], [`SendError::SystemCall`] if the socket does not do zero-copy sends.
    pub fn new(socket: S, binding: impl Into<Arc<TxBinding>>) -> Result<Self, SendError> {
        let binding = binding.into();
        is_tcp(socket.as_fd())?;
        set_option(socket.as_fd(), libc::SO_ZEROCOPY, &1i32.to_ne_bytes())
            .map_err(|error| SystemCall::new("SO_ZEROCOPY", error))?;
        let mut control = Vec::new();
        cmsg::push(
            &mut control,
            Message {
                level: libc::SOL_SOCKET,
                kind: libc::SCM_DEVMEM_DMABUF,
                data: &binding.id().to_ne_bytes(),
            },
        );
        Ok(Self {
            socket,
            binding,
            control,
            in_flight: InFlight::default(),
            completed: VecDeque::new(),
        })
    }

    /// Binds the connection to the interface of the dma-buf (`SO_BINDTODEVICE`), so that a change
    /// of routes cannot lead it elsewhere.
    ///
    /// # Errors
    ///
    /// [`crate::RequestError::NoSuchInterface`], or [`SendError::SystemCall`] if the socket is bound to another interface and
    /// the process lacks `CAP_NET_RAW`.
    pub fn pin_to_interface(&self) -> Result<(), SendError> {
        let name = self.binding.interface().name()?;
        set_option(self.socket.as_fd(), libc::SO_BINDTODEVICE, name.as_bytes())
            .map_err(|error| SystemCall::new("SO_BINDTODEVICE", error).into())
    }

    /// The socket: to poll it, to set a timeout, to receive from it.
    #[must_use]
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Sends that are not complete.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Sends `len` bytes at `offset` of the dma-buf; returns how many the kernel accepted, which
    /// may be fewer.
    ///
    /// # Errors
    ///
    /// [`SendError::OutOfRange`], [`SendError::WouldBlock`] on a non-blocking socket or after its timeout,
    /// [`SendError::RouteElsewhere`], [`SendError::NotSendable`], [`SendError::TooManyInFlight`], [`SendError::SystemCall`]
    /// when the connection is lost.
    pub fn send(&mut self, offset: u64, len: usize) -> Result<usize, SendError> {
        self.send_with(0, offset, len)
    }

    /// As [`Sender::send`], with more `flags`.
    pub(crate) fn send_with(
        &mut self,
        flags: i32,
        offset: u64,
        len: usize,
    ) -> Result<usize, SendError> {
        OutOfRange::check(offset, len as u64, self.binding.len() as u64)?;
        // The kernel numbers no send without bytes, and completes none.
        if len == 0 {
            return Ok(0);
        }
        loop {
            match send_message(self.socket.as_fd(), &self.control, offset, len, flags) {
                Ok(accepted) => {
                    self.in_flight.add(offset, accepted);
                    return Ok(accepted);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(refused(error, self.in_flight.len())),
            }
        }
    }

    /// Sends all of `len` bytes at `offset`, waiting for completions when the socket has no room
    /// for more sends.
    ///
    /// # Errors
    ///
    /// As [`Sender::send`], except for [`SendError::TooManyInFlight`]; bytes before the failure may be on
    /// their way.
    pub fn send_all(&mut self, offset: u64, len: usize) -> Result<(), SendError> {
        let (mut offset, mut len) = (offset, len);
        while len > 0 {
            match self.send(offset, len) {
                Ok(accepted) => {
                    offset += accepted as u64;
                    len -= accepted;
                }
                Err(SendError::TooManyInFlight { in_flight, .. }) if in_flight > 0 => {
                    if self.reap()? == 0 {
                        self.wait_for_error_queue(None)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The sends that were completed since the last call. It does not wait.
    ///
    /// # Errors
    ///
    /// [`SendError::SystemCall`] if the error queue cannot be read, [`SendError::UnexpectedCompletion`] if another
    /// user of the socket sends with `MSG_ZEROCOPY`.
    pub fn completions(&mut self) -> Result<Vec<Completion>, SendError> {
        let mut done = Vec::new();
        self.completions_into(&mut done)?;
        Ok(done)
    }

    /// As [`Sender::completions`]; adds them to `done`.
    pub(crate) fn completions_into(&mut self, done: &mut Vec<Completion>) -> Result<(), SendError> {
        self.reap()?;
        done.extend(self.completed.drain(..));
        Ok(())
    }

    /// Waits until every send is complete, and returns the completions that were not returned
    /// before.
    ///
    /// # Errors
    ///
    /// [`SendError::CompletionTimeout`] after `timeout`: what was completed stays for
    /// [`Sender::completions`]. Otherwise as there.
    pub fn wait_all(&mut self, timeout: Duration) -> Result<Vec<Completion>, SendError> {
        let deadline = Instant::now() + timeout;
        while self.in_flight.len() > 0 {
            if self.reap()? > 0 {
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(SendError::CompletionTimeout {
                    in_flight: self.in_flight.len(),
                });
            }
            self.wait_for_error_queue(Some(left))?;
        }
        Ok(self.completed.drain(..).collect())
    }

    /// Closes the connection's sending side, after which the peer sees the end of the stream.
    ///
    /// # Errors
    ///
    /// [`SendError::SystemCall`] if the connection is lost.
    pub fn finish(&self) -> Result<(), SendError> {
        shutdown(&self.socket, Shutdown::Write)
            .map_err(|errno| SystemCall::new("shut down a connection", errno).into())
    }

    /// Reads the error queue until it is empty; returns how many sends that completed.
    fn reap(&mut self) -> Result<usize, SendError> {
        let before = self.completed.len();
        // Room for a struct sock_extended_err with the address behind it, and for timestamps, if
        // the socket has them on.
        let mut control = [0; 512];
        loop {
            match receive_message(
                self.socket.as_fd(),
                &mut [0],
                &mut control,
                libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
            ) {
                Ok((_, len)) => {
                    for message in cmsg::messages(&control[..len]) {
                        if let Some(notice) = Notice::decode(message)? {
                            let completed = &mut self.completed;
                            self.in_flight.complete(
                                notice.first,
                                notice.last,
                                notice.copied,
                                |done| completed.push_back(done),
                            )?;
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(self.completed.len() - before);
                }
                Err(error) => return Err(SystemCall::new("recvmsg(MSG_ERRQUEUE)", error).into()),
            }
        }
    }

    /// Waits until the error queue may have something.
    fn wait_for_error_queue(&self, timeout: Option<Duration>) -> Result<(), SendError> {
        let mut fds = [PollFd::new(&self.socket, PollFlags::empty())];
        let timeout = timeout.map(Timespec::try_from).transpose().unwrap_or(None);
        match poll(&mut fds, timeout.as_ref()) {
            // A closed connection is reported without end; its last completions still come.
            Ok(_) if fds[0].revents().contains(PollFlags::HUP) => std::thread::sleep(HANG_UP_PAUSE),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(SystemCall::new("poll for completions", errno).into()),
        }
        Ok(())
    }
}

impl<S: AsFd> AsFd for Sender<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sockets of other protocols have zero-copy sends and accept the control message, too (UDP), or ignore both
/// (MPTCP), and read the payload at the "address" that is an offset here.
fn is_tcp(socket: BorrowedFd<'_>) -> Result<(), SendError> {
    let protocol = sockopt::socket_protocol(socket);
    let protocol = protocol.map_err(|errno| SystemCall::new("SO_PROTOCOL", errno))?;
    match protocol {
        Some(ipproto::TCP) => Ok(()),
        other => Err(SendError::NotTcp {
            protocol: other.map_or(0, |protocol| protocol.as_raw().get()),
        }),
    }
}

fn set_option(socket: BorrowedFd<'_>, option: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: the option's value is read from `value`, whose length is given.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
impl Sender<std::net::TcpStream> {
    /// A sender whose sends carry no control message, and its peer: the kernel takes them for ordinary
    /// zero-copy sends, and "offsets" for addresses of this process.
    pub(crate) fn ordinary() -> (Self, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listen");
        let address = listener.local_addr().expect("address");
        let stream = std::net::TcpStream::connect(address).expect("connect");
        let (peer, _) = listener.accept().expect("accept");
        let mut sender = Self::new(stream, TxBinding::fake(1, 1 << 47)).expect("zero copy");
        sender.control.clear();
        (sender, peer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;

    use rustix::net::{AddressFamily, SocketType, socket};

    use super::*;
    use crate::way::Way;

    fn send(sender: &mut Sender<TcpStream>, bytes: &'static [u8]) -> io::Result<()> {
        let offset = bytes.as_ptr().expose_provenance() as u64;
        let sent = send_message(sender.as_fd(), &sender.control, offset, bytes.len(), 0)?;
        sender.in_flight.add(0, sent);
        Ok(())
    }

    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn the_kernels_completions_arrive_once_for_each_send_and_tell_that_loopback_copies() {
        let (mut sender, mut peer) = Sender::ordinary();
        let mut completions = Vec::new();
        for _ in 0..3 {
            for _ in 0..5 {
                send(&mut sender, &[7; 10_000]).expect("send");
            }
            let mut back = vec![0; 5 * 10_000];
            peer.read_exact(&mut back).expect("read");
            assert!(back.iter().all(|&byte| byte == 7));
            completions.extend(sender.wait_all(TIMEOUT).expect("completions"));
            assert_eq!(sender.in_flight(), 0);
        }
        assert_eq!(completions.len(), 15);
        // Loopback copies zero-copy sends (skb_orphan_frags_rx): the one device every machine has.
        assert!(
            completions
                .iter()
                .all(|done| done.copied && done.way() == Way::Copied && done.len == 10_000)
        );
    }

    #[test]
    fn a_send_whose_peer_does_not_answer_times_out_and_is_still_in_flight() {
        let (mut sender, _peer) = Sender::ordinary();
        // Nothing was sent, so that nothing can complete.
        sender.in_flight.add(0, 1);
        let error = sender
            .wait_all(Duration::from_millis(10))
            .expect_err("no completion");
        assert!(
            matches!(error, SendError::CompletionTimeout { in_flight: 1 }),
            "got {error:?}"
        );
        assert_eq!(sender.in_flight(), 1);
    }

    #[test]
    fn a_peer_that_is_gone_is_an_error_and_no_endless_wait() {
        let (mut sender, peer) = Sender::ordinary();
        send(&mut sender, &[7; 10_000]).expect("send");
        // Closing with unread data resets the connection; what was sent is then complete.
        drop(peer);
        sender
            .wait_all(TIMEOUT)
            .expect("a reset completes everything");
        let error = loop {
            if let Err(error) = send(&mut sender, &[7]) {
                break refused(error, 0);
            }
        };
        assert!(
            matches!(error.errno(), Some(libc::EPIPE | libc::ECONNRESET)),
            "got {error:?}"
        );
    }

    #[test]
    fn a_socket_of_another_protocol_is_refused_before_an_offset_is_taken_for_an_address() {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let error = Sender::new(&udp, TxBinding::fake(1, 4096)).expect_err("UDP");
        assert!(
            matches!(error, SendError::NotTcp { protocol: 17 }),
            "got {error:?}"
        );
        // A kernel may lack it.
        if let Ok(mptcp) = socket(
            AddressFamily::INET,
            SocketType::STREAM,
            Some(ipproto::MPTCP),
        ) {
            let error = Sender::new(&mptcp, TxBinding::fake(1, 4096)).expect_err("MPTCP");
            assert!(
                matches!(error, SendError::NotTcp { protocol: 262 }),
                "got {error:?}"
            );
        }
        let (unix, _peer) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let error = Sender::new(&unix, TxBinding::fake(1, 4096)).expect_err("AF_UNIX");
        assert!(
            matches!(error, SendError::NotTcp { protocol: 0 | 1 }),
            "got {error:?}"
        );
    }

    #[test]
    fn a_range_outside_the_dma_buf_is_refused_before_the_kernel_sees_it() {
        let (mut sender, _peer) = Sender::ordinary();
        for (offset, len) in [(0, (1 << 47) + 1), (1 << 47, 1), (u64::MAX, 2)] {
            let error = sender.send(offset, len).expect_err("outside");
            assert!(
                matches!(error, SendError::OutOfRange { .. }),
                "got {error:?}"
            );
        }
        assert_eq!(sender.send(1 << 47, 0).expect("nothing to send"), 0);
        assert_eq!(sender.in_flight(), 0);
    }

    #[test]
    fn a_binding_that_the_kernel_does_not_know_cannot_be_sent_from() {
        let (sender, _peer) = Sender::ordinary();
        let stream = sender.socket.try_clone().expect("clone");
        let mut sender = Sender::new(stream, TxBinding::fake(u32::MAX, 4096)).expect("zero copy");
        let error = sender.send(0, 4096).expect_err("no such binding");
        assert!(
            matches!(error, SendError::NotSendable { .. }),
            "got {error:?}"
        );
        assert_eq!(sender.in_flight(), 0);
    }
}
