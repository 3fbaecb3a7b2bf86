// SPDX-License-Identifier: MIT OR Apache-2.0

//! The part of the kernel's interface that the `io-uring` crate lacks
//! (include/uapi/linux/io_uring/zcrx.h and query.h). What it lacks is in the module's documentation.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::types::{IORING_MEM_REGION_TYPE_USER, io_uring_region_desc, io_uring_zcrx_area_reg};
use vm_memory::MmapRegion;

use super::features::Features;
use crate::interface::Interface;

/// Register opcodes (include/uapi/linux/io_uring.h).
const REGISTER_ZCRX_IFQ: u32 = 32;
const REGISTER_QUERY: u32 = 35;
const REGISTER_ZCRX_CTRL: u32 = 36;

/// `io_uring_zcrx_ifq_reg::flags`: there is no device, and everything is copied.
const REG_NODEV: u32 = 2;

/// `io_uring_zcrx_area_reg::flags`: the memory is a dma-buf.
const AREA_DMABUF: u32 = 1;

/// `zcrx_event_desc::flags`: count into the region.
const EVENT_DESC_STATS: u32 = 1;

/// `zcrx_ctrl::op`.
const CTRL_FLUSH_RQ: u32 = 0;
const CTRL_ARM_EVENT: u32 = 2;
const CTRL_ADD_AREA: u32 = 3;

/// `io_uring_query_hdr::query_op`.
const QUERY_ZCRX: u32 = 1;

/// `struct io_uring_zcrx_offsets`: where the refill ring's fields are in its region, in bytes.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Offsets {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) entries: u32,
    reserved: [u32; 5],
}

/// `struct io_uring_zcrx_ifq_reg`.
#[repr(C)]
#[derive(Debug, Default)]
struct InterfaceQueue {
    ifindex: u32,
    queue: u32,
    entries: u32,
    flags: u32,
    area: u64,
    region: u64,
    offsets: Offsets,
    id: u32,
    rx_buf_len: u32,
    event: u64,
    reserved: [u64; 2],
}

const _: () = assert!(
    size_of::<InterfaceQueue>() == size_of::<io_uring::types::io_uring_zcrx_ifq_reg>(),
    "the crate's struct has the same size: later fields took the place of reserved ones"
);

/// `struct zcrx_event_desc`.
#[repr(C)]
#[derive(Debug, Default)]
struct EventDescription {
    user_data: u64,
    types: u32,
    flags: u32,
    stats_offset: u64,
    reserved: [u64; 9],
}

/// `struct zcrx_ctrl`.
#[repr(C)]
#[derive(Debug, Default)]
struct Control {
    id: u32,
    operation: u32,
    reserved: [u64; 2],
    argument: [u64; 6],
}

/// `struct io_uring_query_hdr`.
#[repr(C)]
#[derive(Debug, Default)]
struct QueryHeader {
    next: u64,
    data: u64,
    operation: u32,
    size: u32,
    result: i32,
    reserved: [u32; 3],
}

/// `struct io_uring_query_zcrx`.
#[repr(C)]
#[derive(Debug, Default)]
struct QueryZcrx {
    register_flags: u64,
    area_flags: u64,
    control_operations: u32,
    features: u32,
    header_size: u32,
    header_alignment: u32,
    reserved: u64,
}

/// The memory to receive into.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    User(&'a MmapRegion),
    DmaBuf { fd: BorrowedFd<'a>, len: usize },
}

impl Target<'_> {
    /// Length in bytes.
    pub(super) fn len(self) -> usize {
        match self {
            Self::User(memory) => memory.size(),
            Self::DmaBuf { len, .. } => len,
        }
    }

    pub(super) fn is_dmabuf(self) -> bool {
        matches!(self, Self::DmaBuf { .. })
    }

    fn description(self) -> io_uring_zcrx_area_reg {
        match self {
            Self::User(memory) => io_uring_zcrx_area_reg {
                addr: memory.as_ptr() as u64,
                len: memory.size() as u64,
                ..Default::default()
            },
            Self::DmaBuf { fd, len } => io_uring_zcrx_area_reg {
                len: len as u64,
                flags: AREA_DMABUF,
                dmabuf_fd: fd.as_raw_fd() as u32,
                ..Default::default()
            },
        }
    }
}

/// What to register.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// Interface and RX queue; none to have everything copied.
    pub(super) queue: Option<(Interface, u32)>,
    /// Entries of the refill ring, a power of two.
    pub(super) entries: u32,
    /// 0 for the kernel's choice.
    pub(super) rx_buf_len: u32,
    pub(super) target: Target<'a>,
    /// Where the refill ring goes.
    pub(super) region: &'a MmapRegion,
    /// What is to be told; none on a kernel that tells nothing.
    pub(super) events: Option<Events>,
}

/// What the kernel is to tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Events {
    /// Where it counts what it copied, in bytes from the start of the region.
    pub(super) stats_offset: usize,
    /// A bit for each [`super::Notification`] that it posts a completion for.
    pub(super) notifications: u32,
    /// The user data of those completions.
    pub(super) user_data: u64,
}

/// What the kernel made of a [`Request`].
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) id: u32,
    pub(super) offsets: Offsets,
    /// Bytes of a receive buffer.
    pub(super) rx_buf_len: u32,
}

/// `IORING_REGISTER_ZCRX_IFQ`.
pub(super) fn register(ring: BorrowedFd<'_>, request: &Request<'_>) -> io::Result<Registration> {
    let mut area = request.target.description();
    let mut region = io_uring_region_desc {
        user_addr: request.region.as_ptr() as u64,
        size: request.region.size() as u64,
        flags: IORING_MEM_REGION_TYPE_USER,
        ..Default::default()
    };
    let mut events = request.events.map(|events| EventDescription {
        user_data: events.user_data,
        types: events.notifications,
        flags: EVENT_DESC_STATS,
        stats_offset: events.stats_offset as u64,
        ..Default::default()
    });
    let (ifindex, rx_queue, flags) = match request.queue {
        Some((interface, queue)) => (interface.index(), queue, 0),
        None => (0, 0, REG_NODEV),
    };
    let mut queue = InterfaceQueue {
        ifindex,
        queue: rx_queue,
        flags,
        entries: request.entries,
        rx_buf_len: request.rx_buf_len,
        area: address(&mut area),
        region: address(&mut region),
        event: events.as_mut().map_or(0, address),
        ..Default::default()
    };
    // SAFETY: `queue` and what it points to are laid out as the kernel's structs and outlive the
    // call. The kernel pins the memory of the area and of the region for itself, and nothing in
    // this process borrows from either: both are accessed as volatile memory only.
    unsafe { syscall(ring, REGISTER_ZCRX_IFQ, (&raw mut queue).cast(), 1) }?;
    Ok(Registration {
        id: queue.id,
        offsets: queue.offsets,
        rx_buf_len: queue.rx_buf_len,
    })
}

/// `ZCRX_CTRL_FLUSH_RQ`: makes the kernel take everything out of the refill ring.
pub(super) fn flush(ring: BorrowedFd<'_>, id: u32) -> io::Result<()> {
    control(ring, id, CTRL_FLUSH_RQ, 0)
}

/// `ZCRX_CTRL_ARM_EVENT`: lets a notification be posted again.
pub(super) fn arm(ring: BorrowedFd<'_>, id: u32, notification: u32) -> io::Result<()> {
    // `zcrx_ctrl_arm_event::event_type` is the first of two u32 of the first word.
    let words = [notification.to_ne_bytes(), [0; 4]].concat();
    let word = words.try_into().map(u64::from_ne_bytes);
    control(ring, id, CTRL_ARM_EVENT, word.unwrap_or_default())
}

/// `ZCRX_CTRL_ADD_AREA`: gives a queue more memory; the area's number is one more than the last one's.
pub(super) fn add_area(ring: BorrowedFd<'_>, id: u32, target: Target<'_>) -> io::Result<()> {
    let mut area = target.description();
    control(ring, id, CTRL_ADD_AREA, address(&mut area))
}

/// `IORING_REGISTER_ZCRX_CTRL` with an argument of one word, which may be a pointer.
fn control(ring: BorrowedFd<'_>, id: u32, operation: u32, word: u64) -> io::Result<()> {
    let mut control = Control {
        id,
        operation,
        ..Default::default()
    };
    control.argument[0] = word;
    // SAFETY: `control` is laid out as `struct zcrx_ctrl` and outlives the call, as does the area that a
    // word may point to; the kernel pins its memory for itself, as with `register`.
    unsafe { syscall(ring, REGISTER_ZCRX_CTRL, (&raw mut control).cast(), 0) }
}

/// What the running kernel can do. A kernel that cannot be asked can do nothing of it.
pub(super) fn features(ring: BorrowedFd<'_>) -> Features {
    let mut answer = QueryZcrx::default();
    let mut header = QueryHeader {
        data: address(&mut answer),
        operation: QUERY_ZCRX,
        size: size_of::<QueryZcrx>() as u32,
        ..Default::default()
    };
    // SAFETY: `header` is laid out as `struct io_uring_query_hdr`, it names the place and the size
    // of `answer`, and both outlive the call.
    let asked = unsafe { syscall(ring, REGISTER_QUERY, (&raw mut header).cast(), 0) };
    if asked.is_err() || header.result != 0 {
        return Features::default();
    }
    decode(&answer)
}

fn decode(answer: &QueryZcrx) -> Features {
    const RX_PAGE_SIZE: u32 = 1 << 0;
    const EVENT: u32 = 1 << 1;
    Features {
        rx_buf_len: answer.features & RX_PAGE_SIZE != 0,
        events: answer.features & EVENT != 0,
        no_device: answer.register_flags & u64::from(REG_NODEV) != 0,
        // The number of operations (`__ZCRX_CTRL_LAST`), which have numbers from 0 on.
        flush: answer.control_operations > CTRL_FLUSH_RQ,
        add_area: answer.control_operations > CTRL_ADD_AREA,
    }
}

fn address<T>(value: &mut T) -> u64 {
    (&raw mut *value).expose_provenance() as u64
}

/// `io_uring_register(2)`.
///
/// # Safety
///
/// `argument` and what it points to are what the opcode reads and writes.
unsafe fn syscall(
    ring: BorrowedFd<'_>,
    opcode: u32,
    argument: *mut libc::c_void,
    count: u32,
) -> io::Result<()> {
    // SAFETY: the caller vouches for the argument.
    let result = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            ring.as_raw_fd(),
            opcode,
            argument,
            count,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_structs_are_laid_out_as_the_kernels() {
        assert_eq!(offset_of!(InterfaceQueue, offsets), 32);
        assert_eq!(offset_of!(InterfaceQueue, id), 64);
        assert_eq!(offset_of!(InterfaceQueue, rx_buf_len), 68);
        assert_eq!(offset_of!(InterfaceQueue, event), 72);
        assert_eq!(size_of::<InterfaceQueue>(), 96);
        assert_eq!(size_of::<Offsets>(), 32);
        assert_eq!(size_of::<EventDescription>(), 96);
        assert_eq!(size_of::<Control>(), 72);
        assert_eq!(size_of::<QueryHeader>(), 40);
        assert_eq!(size_of::<QueryZcrx>(), 40);
    }

    #[test]
    fn each_feature_is_what_the_kernel_says_of_it_and_of_nothing_else() {
        // Flags of registrations, how many operations there are, and features.
        let decoded = |register_flags, control_operations, features| {
            decode(&QueryZcrx {
                register_flags,
                control_operations,
                features,
                ..Default::default()
            })
        };
        let none = Features::default();
        let flush = Features {
            flush: true,
            ..none
        };
        let table = [
            ((1, 0, 0), none),
            (
                (2, 0, 0),
                Features {
                    no_device: true,
                    ..none
                },
            ),
            ((0, 1, 0), flush),
            ((0, 3, 0), flush),
            (
                (0, 4, 0),
                Features {
                    add_area: true,
                    ..flush
                },
            ),
            (
                (0, 0, 1),
                Features {
                    rx_buf_len: true,
                    ..none
                },
            ),
            (
                (0, 0, 2),
                Features {
                    events: true,
                    ..none
                },
            ),
        ];
        for ((flags, operations, features), expected) in table {
            assert_eq!(decoded(flags, operations, features), expected);
        }
    }
}
