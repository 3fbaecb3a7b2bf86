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
use super::fragment::Fragment;
use super::refill::{Copied, MAX_ENTRIES, Refill, Region};
use super::refusal::{self, Asked};
use super::{NODEV, OPERATION};
use crate::error::{BindError, Refusal, RequestError, ZcrxError};

/// A queue of a NIC that receives into an area. It belongs to the io_uring that it was registered in:
/// when that is dropped, or the process dies, the kernel returns the queue to host memory. That happens in
/// the background: soon after, not before.
#[derive(Debug)]
pub struct Queue {
    id: u32,
    rx_buf_len: u32,
    offsets: Offsets,
    region: Region,
    features: Features,
    has_device: bool,
    areas: u32,
}

/// What a completion of a receive says.
#[derive(Debug)]
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
        let has_device = config.queue.is_some();
        if !has_device && !features.no_device {
            return Err(too_old(NODEV, "Linux 7.1 or newer"));
        }

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
            refusal::name(Refusal::from_errno(errno), asked, offered(ring))
        })?;
        let refill = Refill::new(region.clone(), registration.offsets);
        let queue = Self {
            id: registration.id,
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
        if !self.features.add_area {
            return Err(too_old("areas to add to a queue", "Linux 7.3 or newer"));
        }
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

    /// What a completion of a receive says. It must be one of a request of [`Queue::receive`], decoded
    /// once.
    #[must_use]
    pub fn outcome(&self, completion: &cqueue::Entry32) -> Outcome {
        match completion.result() {
            len @ 1.. => {
                let offset = completion.big_cqe()[0];
                Outcome::Fragment(Fragment::from_completion(offset, len.unsigned_abs()))
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
    /// [`ZcrxError::SystemCall`] if it has not come.
    pub fn arm<S: squeue::EntryMarker>(
        &self,
        ring: &IoUring<S, cqueue::Entry32>,
        notification: Notification,
    ) -> Result<(), ZcrxError> {
        abi::arm(descriptor(ring), self.id, notification.to_wire())
            .map_err(|error| ZcrxError::io("ZCRX_CTRL_ARM_EVENT", error))
    }

    /// Makes the kernel take everything out of the refill ring, for when it is full. It takes
    /// Linux 6.19.
    ///
    /// # Errors
    ///
    /// [`ZcrxError::SystemCall`] if the kernel cannot.
    pub fn flush<S: squeue::EntryMarker>(
        &self,
        ring: &IoUring<S, cqueue::Entry32>,
    ) -> Result<(), ZcrxError> {
        abi::flush(descriptor(ring), self.id)
            .map_err(|error| ZcrxError::io("ZCRX_CTRL_FLUSH_RQ", error))
    }

    /// What arrived in host memory and the kernel copied into the area, as far as it counts that: what is
    /// at the start of a packet that was not split at all it does not (`io_zcrx_recv_skb` in
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

fn too_old(missing: &str, requirement: &'static str) -> BindError {
    RequestError::KernelTooOld {
        missing: missing.to_owned(),
        requirement,
        refusal: Refusal::from_errno(libc::EOPNOTSUPP),
    }
    .into()
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
    // A kernel without CONFIG_IO_URING_ZCRX knows the operation all the same. With it, the answer
    // is that there is no queue of this number.
    let flushed = abi::flush(descriptor(ring), u32::MAX);
    let configured = flushed.map_or_else(
        |error| error.raw_os_error() != Some(libc::EOPNOTSUPP),
        |()| true,
    );
    known && configured
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
}
