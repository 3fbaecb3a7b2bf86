// SPDX-License-Identifier: MIT OR Apache-2.0

//! A queue that receives into an area, in a ring of the caller's own.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use io_uring::types::Fd;
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use rustix::param::page_size;

use super::abi::{self, Events, Offsets};
use super::area::Area;
use super::config::{Config, Notification};
use super::features::Features;
use super::fragment::{Fragment, Identity};
use super::refill::{Copied, MAX_ENTRIES, Refill, Region};
use super::refusal::{self, Asked, Running};
use super::{NODEV, OPERATION};
use crate::error::{BindError, Refusal, RequestError, ZcrxError};

/// A queue of a NIC that receives into an area. It belongs to the io_uring that it was registered in:
/// when that is dropped, or the process dies, the kernel returns the queue to host memory. That happens in
/// the background: soon after, not before.
#[derive(Debug)]
pub struct Queue {
    id: u32,
    identity: Identity,
    rx_buf_len: u32,
    offsets: Offsets,
    region: Region,
    features: Features,
    has_device: bool,
    areas: u32,
}

/// What a completion of a receive says.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Payload arrived, behind what arrived on the connection before.
    Fragment(Fragment),
    /// There was no room in the completion queue, or in the kernel's: nothing is lost. Take what is in the
    /// completion queue, then submit a receive for the connection again.
    Again,
    /// The peer closed its direction.
    Closed,
    /// The request was cancelled.
    Cancelled,
    /// Nothing more comes of this request.
    Failed(ZcrxError),
}

impl Queue {
    /// Makes a queue receive into `area` instead of host memory.
    ///
    /// The ring must be one whose completions have 32 bytes, set up with `IORING_SETUP_SINGLE_ISSUER` and
    /// `IORING_SETUP_DEFER_TASKRUN`; it may be disabled still. Other requests go beside the receives.
    ///
    /// # Errors
    ///
    /// The precondition that does not hold.
    pub fn register<S: squeue::EntryMarker>(
        ring: &IoUring<S, cqueue::Entry32>,
        config: &Config,
        area: Area<'_>,
    ) -> Result<(Self, Refill), BindError> {
        let target = area.target()?;
        let (len, dmabuf) = (target.len(), target.is_dmabuf());
        let fd = descriptor(ring);
        let features = abi::features(fd);
        require(lacking(features, config))?;
        let has_device = config.queue.is_some();
        let buffers = len / config.rx_buf_len.unwrap_or(0).max(page_size() as u32) as usize;
        let entries = config
            .refill_entries
            .unwrap_or_else(|| u32::try_from(2 * buffers).unwrap_or(MAX_ENTRIES));
        let region = Region::create(entries)?;
        let (notifications, user_data) = config.notifications.unwrap_or_default();
        let request = abi::Request {
            queue: config.queue,
            entries: region.entries,
            rx_buf_len: config.rx_buf_len.unwrap_or(0),
            target,
            region: &region.memory,
            events: features.events.then(|| Events {
                stats_offset: region.stats_offset(),
                notifications,
                user_data,
            }),
        };
        let registration = abi::register(fd, &request).map_err(|error| {
            let asked = Asked {
                queue: config.queue,
                rx_buf_len: config.rx_buf_len,
                len,
                dmabuf,
            };
            let errno = error.raw_os_error().unwrap_or_default();
            refusal::name(Refusal::from_errno(errno), asked, running(ring, features))
        })?;
        let identity = Identity::new();
        let refill = Refill::new(region.clone(), registration.offsets, identity);
        let queue = Self {
            id: registration.id,
            identity,
            rx_buf_len: registration.rx_buf_len,
            offsets: registration.offsets,
            region,
            features,
            has_device,
            areas: 1,
        };
        Ok((queue, refill))
    }

    /// Gives the queue one more area, of the kind of its first. Returns its number
    /// ([`Fragment::area`]).
    ///
    /// # Errors
    ///
    /// [`RequestError::KernelTooOld`] where the kernel has no `ZCRX_CTRL_ADD_AREA`; what it refuses.
    pub fn add_area<S: squeue::EntryMarker>(
        &mut self,
        ring: &IoUring<S, cqueue::Entry32>,
        area: Area<'_>,
    ) -> Result<u32, BindError> {
        require(lacking_area(self.features))?;
        let target = area.target()?;
        abi::add_area(descriptor(ring), self.id, target)
            .map_err(|error| RequestError::io("ZCRX_CTRL_ADD_AREA", error))?;
        self.areas += 1;
        Ok(self.areas - 1)
    }

    /// Bytes of a receive buffer.
    #[must_use]
    pub fn rx_buf_len(&self) -> u32 {
        self.rx_buf_len
    }

    /// A request that receives from a connected TCP socket until it ends. Its completions go through
    /// [`Queue::outcome`].
    ///
    /// The socket's descriptor must stay open until the last of them, which lacks `IORING_CQE_F_MORE`.
    /// `push` asks for that as its safety contract; the request refers to no memory.
    #[must_use]
    pub fn receive(&self, socket: impl AsFd, user_data: u64) -> squeue::Entry {
        // A length of 0 is no limit.
        opcode::RecvZc::new(Fd(socket.as_fd().as_raw_fd()), 0)
            .ifq(self.id)
            .build()
            .user_data(user_data)
    }

    /// What a completion of a receive says. It must be one of a request of [`Queue::receive`]. Its fragment is one
    /// piece of memory, so that it is taken, not looked at:
    ///
    /// ```compile_fail,E0382
    /// # use devmem_tcp::zcrx::{Queue, io_uring::cqueue::Entry32};
    /// # fn example(queue: Queue, one: Entry32) {
    /// let outcomes = [queue.outcome(one), queue.outcome(one)];
    /// # }
    /// ```
    ///
    /// ```
    /// # use devmem_tcp::zcrx::{Queue, io_uring::cqueue::Entry32};
    /// # fn example(queue: Queue, one: Entry32, other: Entry32) {
    /// let outcomes = [queue.outcome(one), queue.outcome(other)];
    /// # }
    /// ```
    #[must_use]
    pub fn outcome(&self, completion: cqueue::Entry32) -> Outcome {
        match completion.result() {
            len @ 1.. => {
                let offset = completion.big_cqe()[0];
                Outcome::Fragment(Fragment::from_completion(
                    offset,
                    len.unsigned_abs(),
                    self.identity,
                ))
            }
            0 => Outcome::Closed,
            error => match -error {
                libc::ENOSPC => Outcome::Again,
                libc::ECANCELED => Outcome::Cancelled,
                errno => Outcome::Failed(meaning(errno)),
            },
        }
    }

    /// What a completion with the user data of [`Config::notify`] says.
    #[must_use]
    pub fn notification(&self, completion: &cqueue::Entry32) -> Option<Notification> {
        Notification::from_wire(completion.result())
    }

    /// Lets a notification that came be posted again.
    ///
    /// # Errors
    ///
    /// [`ZcrxError::SystemCall`] if it has not come, [`ZcrxError::KernelTooOld`] where none comes.
    pub fn arm<S: squeue::EntryMarker>(
        &self,
        ring: &IoUring<S, cqueue::Entry32>,
        notification: Notification,
    ) -> Result<(), ZcrxError> {
        abi::arm(descriptor(ring), self.id, notification.to_wire())
            .map_err(|error| lacks(error, self.features.events, NOTIFICATIONS, WITH_EVENTS))
    }

    /// Makes the kernel take everything out of the refill ring, for when it is full.
    ///
    /// # Errors
    ///
    /// [`ZcrxError::KernelTooOld`] before Linux 6.19: the NIC's driver looks into the ring as it needs buffers.
    pub fn flush<S: squeue::EntryMarker>(
        &self,
        ring: &IoUring<S, cqueue::Entry32>,
    ) -> Result<(), ZcrxError> {
        abi::flush(descriptor(ring), self.id)
            .map_err(|error| lacks(error, self.features.flush, FLUSH, "Linux 6.19 or newer"))
    }

    /// What arrived in host memory and the kernel copied into the area, as far as it counts that: it does
    /// not count the linear part of a packet that was not split at all (`io_zcrx_recv_skb` in
    /// io_uring/zcrx.c). None on a kernel that doesn't count.
    #[must_use]
    pub fn copied(&self) -> Option<Copied> {
        self.features.events.then(|| self.region.copied())
    }

    /// Whether a device fills its buffers, and takes them from the refill ring.
    pub(super) fn has_device(&self) -> bool {
        self.has_device
    }

    /// Whether there are fragments in the refill ring.
    pub(super) fn is_refilled(&self) -> bool {
        self.region.is_filled(self.offsets)
    }
}

const FLUSH: &str = "ZCRX_CTRL_FLUSH_RQ";
const NOTIFICATIONS: &str = "notifications of io_uring zero-copy receive";
const WITH_EVENTS: &str = "ZCRX_FEATURE_EVENT, as Linux 7.3 has it";

/// What an errno of `IORING_REGISTER_ZCRX_CTRL` means, for an operation that the kernel says that it has (`known`), or
/// doesn't say.
fn lacks(
    error: io::Error,
    known: bool,
    operation: &'static str,
    requirement: &'static str,
) -> ZcrxError {
    match error.raw_os_error() {
        // It knows none of them, or not this one.
        Some(errno @ (libc::EINVAL | libc::EOPNOTSUPP)) if !known => ZcrxError::KernelTooOld {
            missing: operation,
            requirement,
            refusal: Refusal::from_errno(errno),
        },
        _ => ZcrxError::io(operation, error),
    }
}

/// What the running kernel lacks, and the kernel that has it.
type Lack = (&'static str, &'static str);

/// What a registration asks for that the kernel doesn't say that it has. An older one would refuse it with an errno
/// that says nothing, or not see that it is asked for.
fn lacking(features: Features, config: &Config) -> Option<Lack> {
    if config.queue.is_none() && !features.no_device {
        return Some((NODEV, "Linux 7.1 or newer"));
    }
    (config.notifications.is_some() && !features.events).then_some((NOTIFICATIONS, WITH_EVENTS))
}

/// The same of an area to add.
fn lacking_area(features: Features) -> Option<Lack> {
    (!features.add_area).then_some(("areas to add to a queue", "Linux 7.3 or newer"))
}

/// The error for what is lacking.
fn require(lack: Option<Lack>) -> Result<(), BindError> {
    let Some((missing, requirement)) = lack else {
        return Ok(());
    };
    Err(RequestError::KernelTooOld {
        missing: missing.to_owned(),
        requirement,
        refusal: Refusal::from_errno(libc::EOPNOTSUPP),
    }
    .into())
}

pub(super) fn descriptor<S: squeue::EntryMarker>(
    ring: &IoUring<S, cqueue::Entry32>,
) -> BorrowedFd<'_> {
    // SAFETY: the ring's descriptor is open as long as the ring, which is borrowed.
    unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }
}

/// Whether the running kernel has zero-copy receive.
pub(super) fn offered<S: squeue::EntryMarker>(ring: &IoUring<S, cqueue::Entry32>) -> bool {
    let mut probe = Probe::new();
    let known = ring.submitter().register_probe(&mut probe).is_ok()
        && probe.is_supported(opcode::RecvZc::CODE);
    let flushed = abi::flush(descriptor(ring), u32::MAX);
    known && is_configured(flushed.err().and_then(|error| error.raw_os_error()))
}

/// Whether the kernel that knows the operation has it, by the errno of a request to a queue that doesn't exist. One
/// without `CONFIG_IO_URING_ZCRX` knows the operation all the same.
fn is_configured(errno: Option<i32>) -> bool {
    errno != Some(libc::EOPNOTSUPP)
}

/// What the running kernel has, after a refusal.
fn running<S: squeue::EntryMarker>(
    ring: &IoUring<S, cqueue::Entry32>,
    features: Features,
) -> Running {
    let mut probe = Probe::new();
    // No kernel says whether it takes areas of dma-bufs. They came with the operation that makes pipes.
    let dmabuf = ring.submitter().register_probe(&mut probe).is_ok()
        && probe.is_supported(opcode::Pipe::CODE);
    Running {
        receive: offered(ring),
        dmabuf,
        rx_buf_len: features.rx_buf_len,
    }
}

/// What an errno of a receive means.
fn meaning(errno: i32) -> ZcrxError {
    let refusal = Refusal::from_errno(errno);
    match errno {
        libc::ENOMEM => ZcrxError::NoBufferToCopyInto { refusal },
        libc::EFAULT => ZcrxError::SegmentElsewhere { refusal },
        _ => ZcrxError::io(OPERATION, io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_errno_of_a_receive_has_its_own_error() {
        assert!(matches!(
            meaning(libc::ENOMEM),
            ZcrxError::NoBufferToCopyInto { .. }
        ));
        assert!(matches!(
            meaning(libc::EFAULT),
            ZcrxError::SegmentElsewhere { .. }
        ));
        assert_eq!(meaning(libc::ECONNRESET).errno(), Some(libc::ECONNRESET));
    }

    #[test]
    fn what_a_kernel_does_not_say_that_it_has_is_an_error_before_the_call_which_names_the_one_that_has_it()
     {
        let with = |no_device, events, add_area| Features {
            no_device,
            events,
            add_area,
            ..Features::default()
        };
        let lo = Config::new(crate::interface::Interface::from_index(1), 0);
        let notified = |config: Config| config.notify([Notification::Copied], 1);
        let nodev = Config::without_device();
        let table = [
            (with(false, false, false), lo.clone(), None),
            (with(false, false, false), nodev.clone(), Some("Linux 7.1")),
            (with(true, false, false), nodev.clone(), None),
            (
                with(true, false, false),
                notified(lo.clone()),
                Some("Linux 7.3"),
            ),
            (with(false, true, false), notified(lo), None),
            // The older one of what is lacking.
            (
                with(false, false, true),
                notified(nodev.clone()),
                Some("Linux 7.1"),
            ),
            (
                with(true, false, true),
                notified(nodev.clone()),
                Some("Linux 7.3"),
            ),
            (with(true, true, true), notified(nodev), None),
        ];
        let names = |checked: Result<(), BindError>, kernel: Option<&str>| match kernel {
            None => checked.is_ok(),
            Some(kernel) => checked.is_err_and(|error| {
                assert_eq!(error.errno(), Some(libc::EOPNOTSUPP));
                error.to_string().contains(kernel)
            }),
        };
        for (features, config, kernel) in table {
            let checked = require(lacking(features, &config));
            assert!(names(checked, kernel), "{features:?}, {config:?}");
        }
        for (add_area, kernel) in [(false, Some("Linux 7.3")), (true, None)] {
            let checked = require(lacking_area(with(true, true, add_area)));
            assert!(names(checked, kernel), "{add_area}");
        }
    }

    #[test]
    fn a_kernel_without_the_option_is_told_from_one_that_has_no_queue_of_a_number() {
        // Without an answer that it has none, as before Linux 6.19, it is taken to have it.
        for (errno, configured) in [
            (Some(libc::EOPNOTSUPP), false),
            (Some(libc::ENXIO), true),
            (Some(libc::EINVAL), true),
            (None, true),
        ] {
            assert_eq!(is_configured(errno), configured, "{errno:?}");
        }
    }

    #[test]
    fn an_operation_that_the_kernel_lacks_takes_a_newer_one_and_other_refusals_do_not() {
        // Whether the kernel says that it has it, its errno, and whether it is too old.
        for (known, errno, too_old) in [
            (false, libc::EINVAL, true),
            (false, libc::EOPNOTSUPP, true),
            (false, libc::ENXIO, false),
            // A notification that has not come.
            (true, libc::EINVAL, false),
        ] {
            let error = io::Error::from_raw_os_error(errno);
            let error = lacks(error, known, FLUSH, "Linux 6.19 or newer");
            assert_eq!(error.errno(), Some(errno));
            let said = error.to_string();
            assert_eq!(said.contains("Linux 6.19"), too_old, "{said}");
            assert!(said.contains(FLUSH), "{said}");
        }
    }
}
