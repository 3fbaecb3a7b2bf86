// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receiving from connections through a ring that does nothing else.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::area::Area;
use super::config::{Config, Notification};
use super::event::{Connection, End, Event};
use super::queue::{Outcome, Queue, descriptor};
use super::refill::{Copied, Refill};
use super::starved::Starved;
use crate::error::{BindError, RequestError, ZcrxError};

/// Completions of 32 bytes: 16 are the kernel's usual ones, 16 are zcrx's.
type Ring = IoUring<squeue::Entry, cqueue::Entry32>;

/// How many completions can wait if it is not said.
const COMPLETIONS: u32 = 4096;

/// User data of what is not a connection's; connections are numbered from 1.
const CANCEL: u64 = u64::MAX;
const NOTIFICATION: u64 = u64::MAX - 1;
const WAKER: u64 = u64::MAX - 2;

/// A queue with a ring of its own, not yet of a thread.
#[derive(Debug)]
pub struct InterfaceQueue {
    ring: OwnRing,
    queue: Queue,
    refill: Refill,
    starved: Option<Starved>,
}

/// The io_uring; it has no [`std::fmt::Debug`] of its own.
struct OwnRing(Ring);

impl std::fmt::Debug for OwnRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IoUring({})", self.0.as_raw_fd())
    }
}

impl InterfaceQueue {
    /// Makes a queue receive into `area` instead of host memory. 4096 completions can wait.
    ///
    /// # Errors
    ///
    /// The precondition that does not hold.
    pub fn register(config: &Config, area: Area<'_>) -> Result<Self, BindError> {
        Self::register_with(config, area, COMPLETIONS)
    }

    /// As [`InterfaceQueue::register`]; `completions` can wait for [`Receiver::wait`], at most 65536.
    ///
    /// # Errors
    ///
    /// The precondition that does not hold.
    pub fn register_with(
        config: &Config,
        area: Area<'_>,
        completions: u32,
    ) -> Result<Self, BindError> {
        // The ring belongs to the thread that enables it: `start`.
        let ring: Ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_r_disabled()
            .setup_cqsize(completions)
            .build(8)
            .map_err(|error| {
                RequestError::io(
                    "set up an io_uring (/proc/sys/kernel/io_uring_disabled)",
                    error,
                )
            })?;
        let mut config = config.clone();
        if let Some((_, user_data)) = &mut config.notifications {
            *user_data = NOTIFICATION;
        }
        let (queue, mut refill) = Queue::register(&ring, &config, area)?;
        let starved = match queue.has_device() {
            true => None,
            false => {
                let starved = Starved::new();
                let starved =
                    starved.map_err(|error| RequestError::io("make an eventfd", error))?;
                refill.set_waker(starved.waker());
                Some(starved)
            }
        };
        Ok(Self {
            ring: OwnRing(ring),
            queue,
            refill,
            starved,
        })
    }

    /// As [`Queue::add_area`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn add_area(&mut self, area: Area<'_>) -> Result<u32, BindError> {
        self.queue.add_area(&self.ring.0, area)
    }

    /// Bytes of a receive buffer.
    #[must_use]
    pub fn rx_buf_len(&self) -> u32 {
        self.queue.rx_buf_len()
    }

    /// Makes the calling thread the one that receives; the other value recycles fragments, from
    /// whatever thread.
    ///
    /// # Errors
    ///
    /// [`ZcrxError::SystemCall`] if the kernel refuses.
    pub fn start(self) -> Result<(Receiver, Refill), ZcrxError> {
        let enabled = self.ring.0.submitter().register_enable_rings();
        enabled.map_err(|error| ZcrxError::io("IORING_REGISTER_ENABLE_RINGS", error))?;
        let receiver = Receiver {
            ring: self.ring,
            queue: self.queue,
            last: 0,
            sockets: BTreeMap::new(),
            starved: self.starved,
            of_this_thread: PhantomData,
        };
        Ok((receiver, self.refill))
    }
}

/// Receives from connections whose packets reach the queue.
///
/// It stays on the thread that started it: the kernel completes nothing for others
/// (`IORING_SETUP_SINGLE_ISSUER`).
#[derive(Debug)]
pub struct Receiver {
    ring: OwnRing,
    queue: Queue,
    /// The last number given to a connection.
    last: u64,
    /// A request names its socket by descriptor when it is submitted, also a second time.
    sockets: BTreeMap<u64, OwnedFd>,
    /// Without a device only: a driver retries by itself.
    starved: Option<Starved>,
    of_this_thread: PhantomData<*const ()>,
}

impl Receiver {
    /// Receives from a connected TCP socket from the next [`Receiver::wait`] on, until it ends.
    ///
    /// The receiver keeps the connection open until then; shut it down, or cancel it, to end it.
    ///
    /// # Errors
    ///
    /// [`ZcrxError::SystemCall`] if there is no descriptor left, or the ring takes no request.
    pub fn receive_from(&mut self, socket: impl AsFd) -> Result<Connection, ZcrxError> {
        let socket = socket.as_fd().try_clone_to_owned();
        let socket = socket.map_err(|error| ZcrxError::io("duplicate a socket", error))?;
        self.last += 1;
        self.sockets.insert(self.last, socket);
        self.request(self.last)?;
        Ok(Connection(self.last))
    }

    /// Ends one connection: what has arrived still comes, then [`End::Cancelled`]. A connection that has
    /// ended stays so.
    ///
    /// # Errors
    ///
    /// [`ZcrxError::SystemCall`] if the ring takes no request.
    pub fn cancel(&mut self, connection: Connection) -> Result<(), ZcrxError> {
        let starved = self.starved.as_mut();
        if starved.is_some_and(|starved| starved.cancel(connection.0)) {
            return Ok(());
        }
        let entry = opcode::AsyncCancel::new(connection.0).build();
        self.push(&entry.user_data(CANCEL))
    }

    /// Queues the receive of a connection, for the next system call.
    fn request(&mut self, connection: u64) -> Result<(), ZcrxError> {
        let Some(socket) = self.sockets.get(&connection) else {
            return Ok(());
        };
        let entry = self.queue.receive(socket, connection);
        self.push(&entry)
    }

    /// Queues a request that refers to no memory, and to no descriptor but of `sockets`.
    fn push(&mut self, entry: &squeue::Entry) -> Result<(), ZcrxError> {
        loop {
            // SAFETY: the request refers to no memory, and its descriptor stays open until it is
            // complete.
            if unsafe { self.ring.0.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            // The submission queue is full.
            self.enter(0, None)?;
        }
    }

    /// Waits for events and puts them into `events`, whose former contents are gone. It is empty only after
    /// `timeout`: other wakeups of the thread don't end the wait.
    ///
    /// # Errors
    ///
    /// [`ZcrxError::SystemCall`] if the kernel refuses.
    pub fn wait(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<Event>,
    ) -> Result<(), ZcrxError> {
        events.clear();
        // Where there are events already, the clock is not looked at.
        let mut end = None;
        loop {
            self.feed(events)?;
            self.take(events)?;
            if !events.is_empty() {
                return Ok(());
            }
            if self.arm_waker()? {
                continue;
            }
            let left = timeout.map(|timeout| {
                let now = Instant::now();
                // A time that no clock reaches is as good as the longest.
                let end = *end.get_or_insert_with(|| now.checked_add(timeout));
                end.map_or(timeout, |end| end.saturating_duration_since(now))
            });
            if !self.enter(1, left)? {
                return Ok(());
            }
        }
    }

    /// Without a device nobody looks into the refill ring: has the kernel take the buffers, and goes on with
    /// connections that found none.
    fn feed(&mut self, events: &mut Vec<Event>) -> Result<(), ZcrxError> {
        let Some(starved) = &mut self.starved else {
            return Ok(());
        };
        for connection in starved.cancelled() {
            self.sockets.remove(&connection);
            events.push(Event::Ended {
                connection: Connection(connection),
                end: End::Cancelled,
            });
        }
        if self.queue.is_refilled() {
            let connections = starved.take();
            self.flush()?;
            return connections
                .into_iter()
                .try_for_each(|connection| self.request(connection));
        }
        if starved.report() {
            events.push(Event::Starved);
        }
        Ok(())
    }

    /// Has what is recycled from now on end a wait, if a connection needs it. Returns whether something
    /// must be looked at before.
    fn arm_waker(&mut self) -> Result<bool, ZcrxError> {
        let Some(starved) = self.starved.as_mut().filter(|starved| !starved.is_empty()) else {
            return Ok(false);
        };
        if starved.is_unreported() {
            return Ok(true);
        }
        if let Some(eventfd) = starved.arm() {
            let entry = opcode::PollAdd::new(Fd(eventfd.as_raw_fd()), libc::POLLIN as u32);
            self.push(&entry.build().user_data(WAKER))?;
        }
        Ok(self.queue.is_refilled())
    }

    /// Submits requests, lets the kernel work, and waits until there are `wanted` completions.
    /// Returns whether it was in time.
    fn enter(&self, wanted: usize, timeout: Option<Duration>) -> Result<bool, ZcrxError> {
        let timeout = timeout.map(Timespec::from);
        let mut arguments = SubmitArgs::new();
        if let Some(timeout) = &timeout {
            arguments = arguments.timespec(timeout);
        }
        let entered = self.ring.0.submitter().submit_with_args(wanted, &arguments);
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            // Completions that have no room are not lost: they come when there is some.
            Ok(_) | Err((Some(libc::EINTR | libc::EBUSY), _)) => Ok(true),
            Err((Some(libc::ETIME), _)) => Ok(false),
            Err((_, error)) => Err(ZcrxError::io("io_uring_enter", error)),
        }
    }

    /// Takes what is in the completion queue.
    fn take(&mut self, events: &mut Vec<Event>) -> Result<(), ZcrxError> {
        let mut again = Vec::new();
        for completion in self.ring.0.completion() {
            let number = completion.user_data();
            if number == CANCEL {
                continue;
            }
            if number == NOTIFICATION {
                let notification = self.queue.notification(&completion);
                events.extend(notification.map(Event::Notification));
                continue;
            }
            if number == WAKER {
                self.starved.iter_mut().for_each(Starved::woken);
                continue;
            }
            let connection = Connection(number);
            let more = cqueue::more(completion.flags());
            let end = match self.queue.outcome(completion) {
                Outcome::Fragment(fragment) => {
                    events.push(Event::Fragment {
                        connection,
                        fragment,
                    });
                    if !more {
                        again.push(number);
                    }
                    continue;
                }
                Outcome::Again => {
                    again.push(number);
                    continue;
                }
                Outcome::Closed => End::Closed,
                Outcome::Cancelled => End::Cancelled,
                Outcome::Failed(error) => match (error, &mut self.starved) {
                    (ZcrxError::NoBufferToCopyInto { .. }, Some(starved)) => {
                        starved.push(number);
                        continue;
                    }
                    (error, _) => End::Failed(error),
                },
            };
            self.sockets.remove(&number);
            events.push(Event::Ended { connection, end });
        }
        again
            .into_iter()
            .try_for_each(|connection| self.request(connection))
    }

    /// As [`Queue::flush`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn flush(&mut self) -> Result<(), ZcrxError> {
        self.queue.flush(&self.ring.0)
    }

    /// As [`Queue::arm`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn arm(&mut self, notification: Notification) -> Result<(), ZcrxError> {
        self.queue.arm(&self.ring.0, notification)
    }

    /// As [`Queue::copied`].
    #[must_use]
    pub fn copied(&self) -> Option<Copied> {
        self.queue.copied()
    }
}

/// The ring: readable when there are completions, for an event loop.
impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        descriptor(&self.ring.0)
    }
}
