// SPDX-License-Identifier: GPL-2.0

//! XDP: BPF programs that decide on a frame before an skb is made of it.
//!
//! A driver that implements [`Xdp`] gets a [`Program`], makes an [`RxQueue`] for each of its RX
//! queues, and lets it [`run`](Runner::run) over what the device has received. What becomes of a
//! frame is a [`Verdict`], and the frame's memory goes with it:
//!
//! ```text
//!            run()       Pass      -> SkBuff
//! Fragment ---------->   Transmit  -> Frame ---> a TX ring ---> dropped: back to its pool
//!                        Redirect  -> the core's, which may give it to another device as a Frame
//!                        Drop, ... -> back to its pool
//! ```
//!
//! Frames are linear: one buffer takes the longest one, whatever the MTU. Programs for frames in
//! fragments (`xdp.frags`) run as well, and see no fragments.
//!
//! C header: `include/net/xdp.h`

use core::{
    marker::PhantomData,
    mem::{
        ManuallyDrop,
        MaybeUninit, //
    },
    ptr::NonNull, //
};

use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*, //
};
use net_bindings as bindings;

use crate::{
    device::{
        DeviceRef,
        Driver,
        Locked,
        NetDevice, //
    },
    ethtool::ExtAck,
    fragment::{
        Fragment,
        FragmentPool, //
    },
    napi, ops,
    skb::{
        self,
        SkBuff, //
    },
    tx::{
        Transmit,
        TxQueue, //
    },
};

/// What a program's frame needs before it in its buffer, in bytes: what programs may grow it by,
/// and room for the core's `struct xdp_frame`.
// CAST: A small structure.
pub const HEADROOM: u32 = bindings::NET_SHIM_XDP_PACKET_HEADROOM
    + (core::mem::size_of::<bindings::xdp_frame>() as u32)
        .next_multiple_of(bindings::NET_SHIM_CACHE_BYTES);

/// What a device says of itself (`enum netdev_xdp_act`): frames have no fragments, in and out.
pub(crate) const FEATURES: u32 = bindings::netdev_xdp_act_NETDEV_XDP_ACT_BASIC
    | bindings::netdev_xdp_act_NETDEV_XDP_ACT_REDIRECT
    | bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT;

/// A driver that runs XDP programs, and sends frames of theirs.
pub trait Xdp: Driver<Tx: TransmitFrames> {
    /// Runs `program` from now on, or none (`XDP_SETUP_PROG`); also while the interface is up.
    ///
    /// The core has checked what it knows of: no memory is bound to a queue, and with header split
    /// the program is one for fragments.
    ///
    /// # Errors
    ///
    /// Any; all is as before. Taking a program away must not fail.
    fn set_program(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        program: Option<Program>,
        extack: &ExtAck<'_>,
    ) -> Result;
}

/// A transmit path that sends frames beside skbs.
pub trait TransmitFrames: Transmit {
    /// Puts `frame` on the ring; the doorbell waits for [`Self::flush_frames`].
    ///
    /// The queue may be stopped. Gives the frame back if there is no room for it, or if the device
    /// cannot send it.
    fn transmit_frame(
        &mut self,
        frame: Frame,
        queue: TxQueue<'_>,
    ) -> core::result::Result<(), Frame>;

    /// Rings the doorbell.
    fn flush_frames(&mut self);
}

/// A share in an XDP program.
///
/// A queue's receive path may use it as long as it has this; what the program refers to is
/// protected by the RCU read side that a NAPI poll is.
///
/// # Invariants
///
/// Holds a reference to the program.
pub struct Program(NonNull<bindings::bpf_prog>);

// SAFETY: Programs may be run and let go anywhere.
unsafe impl Send for Program {}
// SAFETY: As above.
unsafe impl Sync for Program {}

impl Program {
    /// # Safety
    ///
    /// `prog` must be null or a valid program.
    unsafe fn share(prog: *mut bindings::bpf_prog) -> Option<Self> {
        let prog = NonNull::new(prog)?;

        // SAFETY: As this function requires.
        unsafe { bindings::net_shim_prog_inc(prog.as_ptr()) };
        // INVARIANT: The reference was just taken.
        Some(Self(prog))
    }
}

impl Clone for Program {
    fn clone(&self) -> Self {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_prog_inc(self.0.as_ptr()) };
        // INVARIANT: The reference was just taken.
        Self(self.0)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: The reference is ours by the type invariant.
        unsafe { bindings::net_shim_prog_put(self.0.as_ptr()) };
    }
}

/// A linear frame that is on its way to be sent; dropped when it was, or cannot be: its memory goes
/// back to where it came from, from any context but hard interrupts.
///
/// # Invariants
///
/// Owns the frame, which has no fragments.
pub struct Frame(NonNull<bindings::xdp_frame>);

// SAFETY: A frame may be used by any one thread at a time.
unsafe impl Send for Frame {}

impl Frame {
    /// `None`, and the caller keeps it, if there is no frame or it has fragments.
    ///
    /// # Safety
    ///
    /// `frame` must be null or a valid frame, which the caller gives away.
    unsafe fn from_raw(frame: *mut bindings::xdp_frame) -> Option<Self> {
        let frame = NonNull::new(frame)?;
        // SAFETY: As this function requires.
        let flags = unsafe { (*frame.as_ptr()).flags };

        // INVARIANT: As this function requires, and as is checked.
        (flags & bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS == 0).then_some(Self(frame))
    }

    fn into_raw(self) -> *mut bindings::xdp_frame {
        ManuallyDrop::new(self).0.as_ptr()
    }

    pub(crate) fn data(&self) -> *mut c_void {
        // SAFETY: Valid by the type invariant.
        unsafe { (*self.0.as_ptr()).data }
    }

    /// The length in bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        // SAFETY: Valid by the type invariant.
        unsafe { (*self.0.as_ptr()).len }
    }

    /// Returns whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: Owned by the type invariant.
        unsafe { bindings::xdp_return_frame(self.0.as_ptr()) };
    }
}

/// What became of a frame.
pub enum Verdict {
    /// It goes up, as the program left it.
    Pass(SkBuff),
    /// It should go up, but there was no memory for an skb.
    NoMemory,
    /// It was dropped, as the program wants.
    Drop,
    /// It shall be sent where it came from (`XDP_TX`).
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
        pool: &FragmentPool,
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
    /// device has written and which is a buffer of the queue's pool.
    pub fn run<T: Driver>(
        &self,
        buffer: Fragment,
        len: u32,
        dev: &DeviceRef<T>,
        napi: &napi::Context<'_>,
    ) -> Verdict {
        if len > buffer.size().saturating_sub(HEADROOM + skb::TAILROOM) {
            return Verdict::Failed;
        }
        let (dev, program) = (dev.as_raw(), self.program.0.as_ptr());
        let mut xdp = MaybeUninit::<bindings::xdp_buff>::uninit();
        let xdp = xdp.as_mut_ptr();

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
                    match SkBuff::from_raw(bindings::net_shim_xdp_build_skb(xdp)) {
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

impl<T: Xdp> DeviceRef<T> {
    /// Runs `f` on the transmit path of queue `index`, under its lock; `None` if there is none: the
    /// interface is down. For NAPI context.
    pub fn transmit_frames<R>(
        &self,
        index: u32,
        f: impl FnOnce(&mut T::Tx, TxQueue<'_>) -> R,
    ) -> Option<R> {
        let state = self.tx_states().get(index as usize)?;
        let queue = self.tx_queue(index);

        queue.locked(|| {
            queue.used();
            // SAFETY: The queue's lock is held inside this closure.
            unsafe { (*state.get()).as_mut() }.map(|tx| f(tx, queue))
        })
    }
}

/// The C operations of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

impl<T: Xdp> Table<T> {
    pub(crate) const NETDEV: &'static bindings::net_device_ops = &bindings::net_device_ops {
        ndo_bpf: Some(Self::bpf),
        ndo_xdp_xmit: Some(Self::xmit),
        ..*ops::Table::<T>::NETDEV
    };

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_bpf`.
    unsafe extern "C" fn bpf(
        dev: *mut bindings::net_device,
        bpf: *mut bindings::netdev_bpf,
    ) -> c_int {
        // SAFETY: The core calls with a valid structure.
        let command = unsafe { (*bpf).command };

        if command != bindings::bpf_netdev_command_XDP_SETUP_PROG {
            return EINVAL.to_errno();
        }
        // SAFETY: This command has these fields.
        let (prog, extack) = unsafe {
            let setup = &(*bpf).__bindgen_anon_1.__bindgen_anon_1;

            (setup.prog, ExtAck::from_raw(setup.extack))
        };
        // SAFETY: The core holds the lock.
        let (locked, control) = unsafe { Locked::<T>::new(dev) };

        from_result(|| {
            // SAFETY: The core calls with a valid program, or null.
            let program = unsafe { Program::share(prog) };

            T::set_program(locked, control, program, &extack)?;
            if !prog.is_null() {
                // SAFETY: The driver has shares of its own; the core gave this one away.
                unsafe { bindings::net_shim_prog_put(prog) };
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_xdp_xmit`.
    unsafe extern "C" fn xmit(
        dev: *mut bindings::net_device,
        count: c_int,
        frames: *mut *mut bindings::xdp_frame,
        flags: u32,
    ) -> c_int {
        if flags & !bindings::NET_SHIM_XDP_XMIT_FLAGS != 0 {
            return EINVAL.to_errno();
        }
        // SAFETY: The device is valid.
        let index = unsafe { bindings::net_shim_this_tx_queue(dev) };
        // SAFETY: The core calls with a device of `T`.
        let dev = unsafe { NetDevice::<T>::from_raw(dev) };
        let queue = dev.tx_queue(index);

        queue.locked(|| {
            queue.used();
            // SAFETY: The queue's lock is held inside this closure.
            let state = unsafe { dev.tx(index as usize).and_then(|slot| (*slot).as_mut()) };
            let Some(tx) = state else {
                return ENETDOWN.to_errno();
            };
            let mut sent = 0;

            while sent < count {
                // SAFETY: The core calls with so many frames, and gives away those that are sent.
                let Some(frame) = (unsafe { Frame::from_raw(*frames.add(sent as usize)) }) else {
                    break;
                };
                if let Err(frame) = tx.transmit_frame(frame, queue) {
                    // The core frees what was not sent.
                    let _ = frame.into_raw();
                    break;
                }
                sent += 1;
            }
            if flags & bindings::NET_SHIM_XDP_XMIT_FLUSH != 0 {
                tx.flush_frames();
            }
            sent
        })
    }
}
