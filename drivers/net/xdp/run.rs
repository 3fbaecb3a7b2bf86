// SPDX-License-Identifier: GPL-2.0

//! A queue runs a program over what it has received.

use core::ptr::NonNull;

use kernel::{
    error::to_result,
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    metadata::Buffer,
    Buff,
    Frame,
    Program,
    TransmitFrames,
    Xdp, //
};
use crate::{
    device::{
        Driver,
        Locked, //
    },
    fragment::FragmentPool,
    napi::Receive,
    skb::RxSkb, //
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

// SAFETY: `info` is plain data, which refers to the pool, of which it is a user, and to the device, which
// is only read in its NAPIs' polls.
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

    /// Returns whether there is a program to be run.
    #[inline]
    pub fn has_program(&self) -> bool {
        self.program.is_some()
    }

    /// Lets the program decide on `frame`, which is in a buffer of the queue's pool; without one it
    /// goes up. The program may ask for `metadata`.
    ///
    /// A program without fragment support sees no frame with fragments: [`Verdict::Failed`].
    pub fn run<T: Xdp>(
        &self,
        frame: Buff,
        metadata: &T::Metadata,
        napi: &Receive<'_, T>,
    ) -> Verdict {
        let dev = napi.device().as_raw();
        let program = self.program.as_ref();

        if self.info.dev != dev
            || program.is_some_and(|program| {
                !program.belongs_to(dev) || (frame.fragments.any() && !program.has_fragments())
            })
        {
            return Verdict::Failed;
        }
        let program = program.map_or(core::ptr::null_mut(), Program::as_raw);
        // The list of fragments is in the buffer: they are dropped first.
        let Buff {
            buffer,
            mut fragments,
            len,
        } = frame;
        let mut buff = Buffer::new(&self.info, &buffer, len, fragments.flags, metadata);
        // Of the whole: the program's calls come back with it.
        let xdp = core::ptr::from_mut(&mut buff).cast::<bindings::xdp_buff>();
        let action = if program.is_null() {
            bindings::xdp_action_XDP_PASS
        } else {
            // SAFETY: By the frame's invariants; NAPI context, and the program is valid.
            let action = unsafe { bindings::net_shim_xdp_run(program, xdp) };

            // It may have cut some off.
            // SAFETY: The frame is ours.
            fragments.flags = unsafe { (*xdp).__bindgen_anon_1.__bindgen_anon_1.flags };
            action
        };

        // Each of these takes the references to all memory, unless it fails.
        // SAFETY: `xdp` is what the program left of the frame, which is in the buffer and ours.
        let verdict = unsafe {
            match action {
                bindings::xdp_action_XDP_DROP => return Verdict::Drop,
                bindings::xdp_action_XDP_PASS => {
                    match NonNull::new(bindings::net_shim_xdp_build_skb(xdp)) {
                        // Without an Ethernet header it is dropped, which has its memory, too.
                        Some(skb) => Some(match RxSkb::from_raw(skb.as_ptr()) {
                            Some(skb) => Verdict::Pass(skb),
                            None => Verdict::Failed,
                        }),
                        None => return Verdict::NoMemory,
                    }
                }
                bindings::xdp_action_XDP_TX => {
                    Frame::from_raw(bindings::net_shim_xdp_to_frame(xdp), T::Tx::FRAGMENTS)
                        .map(Verdict::Transmit)
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
                core::mem::forget(fragments);
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

impl Drop for RxQueue {
    fn drop(&mut self) {
        // SAFETY: Registered by the type invariant, and no program runs.
        unsafe { bindings::xdp_rxq_info_unreg(&mut *self.info) };
    }
}
