// SPDX-License-Identifier: GPL-2.0

//! A queue runs a program over what it has received.

use kernel::{
    error::to_result,
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    metadata::Buffer,
    Frame,
    Program,
    Xdp, //
};
use crate::{
    device::{
        Driver,
        Locked, //
    },
    fragment::{
        Fragment,
        FragmentPool, //
    },
    napi::Receive,
    skb::{
        self,
        RxSkb, //
    },
};

/// What a program's frame needs before it in its buffer, in bytes: what programs may grow it by,
/// and room for the core's `struct xdp_frame`.
// CAST: A small structure.
pub const HEADROOM: u32 = bindings::NET_SHIM_XDP_PACKET_HEADROOM
    + (core::mem::size_of::<bindings::xdp_frame>() as u32)
        .next_multiple_of(bindings::NET_SHIM_CACHE_BYTES);

/// What became of a frame.
pub enum Verdict {
    /// It goes up, as the program left it.
    Pass(RxSkb),
    /// It should go up, but there was no memory for an skb.
    NoMemory,
    /// It was dropped, as the program wants.
    Drop,
    /// It is to be sent where it came from (`XDP_TX`).
    Transmit(Frame),
    /// It went on to another device, processor or socket.
    Redirect,
    /// It was dropped: the program failed, or nobody can do what it wants.
    Failed,
}

/// An RX queue as programs see it (`struct xdp_rxq_info`), and the program that it runs.
///
/// # Invariants
///
/// `info` is registered.
pub struct RxQueue {
    info: KBox<bindings::xdp_rxq_info>,
    program: Option<Program>,
}

// SAFETY: `info` is plain data, which refers to the device and the pool; both are kept.
unsafe impl Send for RxQueue {}

impl RxQueue {
    /// Registers RX queue `queue`, whose frames are in buffers of `pool`, and which runs `program`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new<T: Driver>(
        dev: Locked<'_, T>,
        queue: u32,
        pool: &FragmentPool<T>,
        program: Option<Program>,
    ) -> Result<Self> {
        let mut info = KBox::new(pin_init::zeroed::<bindings::xdp_rxq_info>(), GFP_KERNEL)?;

        // SAFETY: The device is valid; it outlives its queues' memory.
        to_result(unsafe {
            bindings::__xdp_rxq_info_reg(&mut *info, dev.device().as_raw(), queue, 0, 0)
        })?;
        // INVARIANT: Registered above. Dropping it undoes that.
        let mut this = Self { info, program };

        // SAFETY: Registered above; the pool is valid, and gets a user.
        to_result(unsafe {
            bindings::xdp_rxq_info_reg_mem_model(
                &mut *this.info,
                bindings::xdp_mem_type_MEM_TYPE_PAGE_POOL,
                pool.pages().as_raw().cast(),
            )
        })?;
        Ok(this)
    }

    /// Runs another program from now on, or none.
    pub fn set_program(&mut self, program: Option<Program>) {
        self.program = program;
    }

    /// The program, if there is one, to be run.
    #[inline]
    pub fn runner(&self) -> Option<Runner<'_>> {
        self.program.as_ref().map(|program| Runner {
            program,
            info: &self.info,
        })
    }
}

impl Drop for RxQueue {
    fn drop(&mut self) {
        // SAFETY: Registered by the type invariant, and no program runs.
        unsafe { bindings::xdp_rxq_info_unreg(&mut *self.info) };
    }
}

/// A queue's program.
pub struct Runner<'a> {
    program: &'a Program,
    info: &'a bindings::xdp_rxq_info,
}

impl Runner<'_> {
    /// Runs the program over `len` bytes of a frame from [`HEADROOM`] of `buffer` on, which the
    /// device has written and which is a buffer of the queue's pool. The program may ask for
    /// `metadata`.
    pub fn run<T: Xdp>(
        &self,
        buffer: Fragment,
        len: u32,
        metadata: &T::Metadata,
        napi: &Receive<'_, T>,
    ) -> Verdict {
        let dev = napi.device();

        if len > buffer.size().saturating_sub(HEADROOM + skb::TAILROOM)
            || !self.program.belongs_to(dev.as_raw())
            || self.info.dev != dev.as_raw()
        {
            return Verdict::Failed;
        }
        let (dev, program) = (dev.as_raw(), self.program.as_raw());
        let mut frame = Buffer::new(metadata);
        // Of the whole: the program's calls come back with it.
        let xdp = core::ptr::from_mut(&mut frame).cast::<bindings::xdp_buff>();

        // SAFETY: The buffer is valid for its size, which has room for all three and is from a
        // pool. Nothing writes to the queue's info.
        unsafe {
            bindings::net_shim_xdp_prepare(
                xdp,
                core::ptr::from_ref(self.info).cast_mut(),
                buffer.netmem().as_raw(),
                buffer.as_ptr().cast(),
                buffer.offset(),
                buffer.size(),
                HEADROOM,
                len,
            );
        }
        // SAFETY: Prepared above; NAPI context, and the program is valid.
        let action = unsafe { bindings::net_shim_xdp_run(program, xdp) };

        // Each of these takes the reference to the buffer, unless it fails.
        // SAFETY: `xdp` is what the program left of the frame, which is in the buffer and ours.
        let verdict = unsafe {
            match action {
                bindings::xdp_action_XDP_DROP => return Verdict::Drop,
                bindings::xdp_action_XDP_PASS => {
                    match RxSkb::from_raw(bindings::net_shim_xdp_build_skb(xdp)) {
                        Some(skb) => Some(Verdict::Pass(skb)),
                        None => return Verdict::NoMemory,
                    }
                }
                bindings::xdp_action_XDP_TX => {
                    Frame::from_raw(bindings::net_shim_xdp_to_frame(xdp)).map(Verdict::Transmit)
                }
                bindings::xdp_action_XDP_REDIRECT => {
                    (bindings::xdp_do_redirect(dev, xdp, program) == 0).then(|| {
                        napi.flush_redirected();
                        Verdict::Redirect
                    })
                }
                _ => None,
            }
        };

        match verdict {
            Some(verdict) => {
                let _ = buffer.into_raw();
                verdict
            }
            None => {
                // SAFETY: Both are valid.
                unsafe { bindings::net_shim_xdp_failed(dev, program, action) };
                Verdict::Failed
            }
        }
    }
}
