// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Registers, by their offset in [`BAR_REGISTERS`](crate::pci::BAR_REGISTERS). All have 32 bits. What is
//! written to is read back, unless something else is said; where there is no register, writes do nothing and
//! reads are 0.
//!
//! ```text
//! 0x0000  of the device: ID, CAPABILITIES, RESET
//! 0x1000  of queue 0; 0x1200 of queue 1 …: only for the driver
//!         +0x000  CONTROL … SIGNAL_STATUS
//!         +0x100  window 0; +0x110 window 1 …
//! 0x8000  portal of queue 0; 0x9000 of queue 1 …: for the user
//! ```

/// Bytes of the BAR.
pub const BAR_SIZE: usize = 0x10000;

/// Work queues.
pub const QUEUES: u32 = 8;
/// Windows of a queue.
pub const WINDOWS: u32 = 16;
/// Binary logarithm of the most descriptors that a ring has.
pub const MAX_RING_SIZE: u32 = 10;

/// Reads as [`ID_VALUE`].
pub const ID: u32 = 0x0000;
/// What [`ID`] reads as; the lowest byte is the version of this interface.
pub const ID_VALUE: u32 = 0x4e42_4501;
/// Reads as [`CAPABILITIES_VALUE`].
pub const CAPABILITIES: u32 = 0x0004;
/// Queues, windows of a queue, binary logarithm of the largest ring: a byte each, from the lowest.
pub const CAPABILITIES_VALUE: u32 = QUEUES | WINDOWS << 8 | MAX_RING_SIZE << 16;
/// Writing 1 resets all queues and closes all windows, at once: what is being done is not completed. Reads
/// as 0.
pub const RESET: u32 = 0x0008;

/// Of [`queue`]: bit 0 lets the queue run. It starts with [`HEAD`] and [`TAIL`] at 0. Once the bit is
/// cleared, the queue comes to rest after the descriptor that is being executed, at the latest; that one may
/// be done in part then, without a completion. The bit must not be set again before the queue is at rest.
pub const CONTROL: u32 = 0x00;
/// In [`CONTROL`]: the queue runs.
pub const CONTROL_ENABLE: u32 = 1 << 0;
/// Of [`queue`], read only: [`STATUS_RUNNING`], [`STATUS_BAD_RING`].
pub const STATUS: u32 = 0x04;
/// In [`STATUS`]: the queue reaches memory. It does for some time after it was disabled.
pub const STATUS_RUNNING: u32 = 1 << 0;
/// In [`STATUS`]: the ring is none or not in its window, nothing answers there, or [`TAIL`] was more than a
/// ring ahead of [`HEAD`]. The queue has come to rest, and sent its interrupt. Cleared when it is enabled.
pub const STATUS_BAD_RING: u32 = 1 << 1;
/// Of [`queue`]: the window that the ring is in. Taken, as the next three are, when the queue is enabled.
pub const RING_WINDOW: u32 = 0x08;
/// Of [`queue`]: binary logarithm of the count of descriptors in the ring, at most [`MAX_RING_SIZE`].
pub const RING_SIZE: u32 = 0x0c;
/// Of [`queue`]: where in its window the ring is, in bytes, a multiple of 64; lower half.
pub const RING_OFFSET_LOW: u32 = 0x10;
/// Of [`queue`]: the upper half of [`RING_OFFSET_LOW`].
pub const RING_OFFSET_HIGH: u32 = 0x14;
/// Of [`queue`]: the bus address that a descriptor's signal is written to, after its completion and before
/// its interrupt; a multiple of four; lower half.
pub const SIGNAL_LOW: u32 = 0x20;
/// Of [`queue`]: the upper half of [`SIGNAL_LOW`].
pub const SIGNAL_HIGH: u32 = 0x24;
/// Of [`queue`]: the value of the next signal. Writing it arms the signal; sending it disarms it, as
/// disabling the queue does, and writing [`SIGNAL_STATUS`].
pub const SIGNAL_VALUE: u32 = 0x28;
/// Of [`queue`]: [`SIGNAL_ARMED`], [`SIGNAL_SENT`]. Writing it, whatever the value, disarms the signal: what
/// is read afterwards says for good whether it was sent.
pub const SIGNAL_STATUS: u32 = 0x2c;
/// In [`SIGNAL_STATUS`]: the signal is yet to be sent.
pub const SIGNAL_ARMED: u32 = 1 << 0;
/// In [`SIGNAL_STATUS`]: it was sent since it was last armed.
pub const SIGNAL_SENT: u32 = 1 << 1;

/// Of [`window`]: the bus address of its first byte, lower half.
pub const WINDOW_BASE_LOW: u32 = 0x0;
/// Of [`window`]: the upper half of [`WINDOW_BASE_LOW`].
pub const WINDOW_BASE_HIGH: u32 = 0x4;
/// Of [`window`]: upper half of [`WINDOW_SIZE_LOW`], written before it.
pub const WINDOW_SIZE_HIGH: u32 = 0x8;
/// Of [`window`]: bytes, lower half. Writing it opens the window, or closes it if the size is 0. It can be
/// opened while the queue runs, and must be closed, or moved, only when it does not.
pub const WINDOW_SIZE_LOW: u32 = 0xc;

/// Of [`portal`], write only: how many descriptors there have been since the queue was enabled, modulo
/// 2^32. A queue executes those that it has not; one that does not run takes no notice.
pub const TAIL: u32 = 0x0;
/// Of [`portal`], read only: how many descriptors have been completed since the queue was enabled, modulo
/// 2^32.
pub const HEAD: u32 = 0x4;

/// Bytes of a portal.
pub const PORTAL_SIZE: u32 = 0x1000;

const QUEUE: u32 = 0x1000;
const QUEUE_STRIDE: u32 = 0x200;
const WINDOW: u32 = 0x100;
const WINDOW_STRIDE: u32 = 0x10;
const PORTAL: u32 = 0x8000;

/// Where the driver's registers of a queue begin. There is no such queue from [`QUEUES`] on; then it is
/// the last one.
#[inline]
pub const fn queue(queue: u32) -> u32 {
    QUEUE + below(queue, QUEUES) * QUEUE_STRIDE
}

/// Where the registers of a queue's window begin.
#[inline]
pub const fn window(of: u32, window: u32) -> u32 {
    queue(of) + WINDOW + below(window, WINDOWS) * WINDOW_STRIDE
}

/// Where the portal of a queue begins.
#[inline]
pub const fn portal(queue: u32) -> u32 {
    PORTAL + below(queue, QUEUES) * PORTAL_SIZE
}

#[inline]
const fn below(n: u32, count: u32) -> u32 {
    if n < count {
        n
    } else {
        count - 1
    }
}

/// A register of the device's.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Register {
    /// One of the device as a whole, by its offset.
    Device(u32),
    /// One of a queue, such as [`CONTROL`].
    Queue {
        /// Which queue.
        queue: u32,
        /// Which of its registers.
        register: u32,
    },
    /// One of a window, such as [`WINDOW_SIZE_LOW`].
    Window {
        /// Which queue's.
        queue: u32,
        /// Which of its windows.
        window: u32,
        /// Which of the window's registers.
        register: u32,
    },
    /// One of a portal, such as [`TAIL`].
    Portal {
        /// Which queue's.
        queue: u32,
        /// Which of its registers.
        register: u32,
    },
}

impl Register {
    /// What is at an offset, a multiple of four; `None` beyond what there is.
    pub const fn at(offset: u32) -> Option<Self> {
        if offset < QUEUE {
            return Some(Self::Device(offset));
        }
        if offset >= PORTAL {
            let (queue, register) = split(offset - PORTAL, PORTAL_SIZE);
            return if queue < QUEUES {
                Some(Self::Portal { queue, register })
            } else {
                None
            };
        }
        let (queue, register) = split(offset - QUEUE, QUEUE_STRIDE);
        if queue >= QUEUES {
            return None;
        }
        if register < WINDOW {
            return Some(Self::Queue { queue, register });
        }
        let (window, register) = split(register - WINDOW, WINDOW_STRIDE);
        Some(Self::Window {
            queue,
            window,
            register,
        })
    }
}

/// Quotient and remainder.
const fn split(offset: u32, by: u32) -> (u32, u32) {
    (offset / by, offset % by)
}

const _: () = assert!(WINDOW + WINDOWS * WINDOW_STRIDE == QUEUE_STRIDE);
const _: () = assert!(QUEUE + QUEUES * QUEUE_STRIDE <= PORTAL);
const _: () = assert!((PORTAL + QUEUES * PORTAL_SIZE) as usize == BAR_SIZE);
