// SPDX-License-Identifier: GPL-2.0

//! XDP: BPF programs that decide on a frame before an skb is made of it.
//!
//! A driver that implements [`Xdp`] gets a [`Program`], makes an [`RxQueue`] for each of its RX
//! queues, and lets it [`run`](RxQueue::run) over what the device has received. What becomes of a
//! frame is a [`Verdict`], and the frame's memory goes with it:
//!
//! ```text
//! Fragment ---> Buff ------->   Pass      -> RxSkb
//! Netmem   ----^       run()    Transmit  -> Frame ---> a TX ring ---> dropped: back to its pool
//!                               Redirect  -> the core's, which may give another device a Frame
//!                               Drop, ... -> back to its pool
//! ```
//!
//! A queue can also work on the memory of an AF_XDP socket: then a driver implements [`Xsk`], and
//! the queue's buffers are a [`Pool`]'s.
//!
//! A driver may put a frame together of a buffer and fragments, as where headers are split from
//! payload, and says so with [`Xdp::FRAGMENTS`]. Only programs for that (`xdp.frags`) see such frames.
//!
//! C header: `include/net/xdp.h`

mod buff;
mod frame;
mod metadata;
mod pool;
mod program;
mod run;
mod xsk;

use core::marker::PhantomData;

use kernel::{
    cpu::CpuId,
    error::from_result,
    prelude::*, //
};
use net_bindings as bindings;

pub(crate) use self::pool::Pools;
pub use self::{
    buff::Buff,
    frame::Frame,
    metadata::{
        HashType,
        Metadata, //
    },
    pool::{
        Pool,
        XskFrame, //
    },
    program::Program,
    run::{
        RxQueue,
        Verdict,
        HEADROOM, //
    },
    xsk::Xsk,
};
use crate::{
    device::{
        Driver,
        Locked,
        NetDevice, //
    },
    ethtool::ExtAck,
    napi::Receive,
    once::read_once,
    ops,
    tx::{
        self,
        Transmit,
        TxQueue, //
    },
};

pub(crate) use self::{
    metadata::Table as MetadataTable,
    xsk::{
        Table as XskTable,
        FEATURES as XSK_FEATURES, //
    }, //
};

/// A driver that runs XDP programs, and sends frames of theirs.
pub trait Xdp: Driver<Tx: TransmitFrames> {
    /// What the device says of a frame.
    type Metadata: Metadata;

    /// Frames may have fragments (`NETDEV_XDP_ACT_RX_SG`).
    const FRAGMENTS: bool = false;

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

/// A transmit path that sends frames beside skbs; one that sends none for other devices leaves both
/// operations out.
#[vtable]
pub trait TransmitFrames: Transmit {
    /// Frames may have fragments (`NETDEV_XDP_ACT_NDO_XMIT_SG`); otherwise no frame has any.
    const FRAGMENTS: bool = false;

    /// Puts `frame` on the ring; the doorbell waits for [`Self::flush_frames`].
    ///
    /// The queue may be stopped. Returns the frame if there is no room for it, or if the device
    /// cannot send it.
    fn transmit_frame(
        &mut self,
        frame: Frame,
        _queue: TxQueue<'_>,
    ) -> core::result::Result<(), Frame> {
        Err(frame)
    }

    /// Rings the doorbell.
    fn flush_frames(&mut self) {}
}

impl<T: Xdp> Receive<'_, T> {
    /// Runs `f` on the transmit path of queue `index`, under its lock; `None` if there is none: the
    /// interface is down. What sends something says so with [`TxQueue::used`].
    pub fn transmit_frames<R>(
        &self,
        index: u32,
        f: impl FnOnce(&mut T::Tx, TxQueue<'_>) -> R,
    ) -> Option<R> {
        // SAFETY: The device is registered, as one of its NAPIs is being polled.
        unsafe { tx::with_state(self.device(), index, f) }
    }
}

/// The C operations of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

impl<T: Xdp> Table<T> {
    /// What the device says of itself (`enum netdev_xdp_act`).
    pub(crate) const FEATURES: u32 = bindings::netdev_xdp_act_NETDEV_XDP_ACT_BASIC
        | bindings::netdev_xdp_act_NETDEV_XDP_ACT_REDIRECT
        | if T::FRAGMENTS {
            bindings::netdev_xdp_act_NETDEV_XDP_ACT_RX_SG
        } else {
            0
        }
        | match (T::Tx::HAS_TRANSMIT_FRAME, T::Tx::FRAGMENTS) {
            (false, _) => 0,
            (true, false) => bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT,
            (true, true) => {
                bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT
                    | bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT_SG
            }
        };

    pub(crate) const NETDEV: &'static bindings::net_device_ops = &bindings::net_device_ops {
        ndo_bpf: Some(Self::bpf),
        ndo_xdp_xmit: if T::Tx::HAS_TRANSMIT_FRAME {
            Some(Self::xmit)
        } else {
            None
        },
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
            let program = unsafe { Program::share(prog, dev) };

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
        // SAFETY: The device is valid; it has a TX queue.
        let queues = unsafe { read_once(&raw const (*dev).real_num_tx_queues) }.max(1);
        let index = CpuId::current().as_u32() % queues;
        // SAFETY: The core calls with a device of `T`.
        let dev = unsafe { NetDevice::<T>::from_raw(dev) };
        // SAFETY: The core calls with a registered device.
        let sent = unsafe {
            tx::with_state(dev, index, |tx, queue| {
                queue.used();
                Self::send(tx, queue, count, frames, flags)
            })
        };

        sent.unwrap_or_else(|| ENETDOWN.to_errno())
    }

    /// Puts so many of `frames` on the ring as there is room for; returns how many.
    ///
    /// # Safety
    ///
    /// There must be `count` frames, and the caller gives away those that are sent.
    unsafe fn send(
        tx: &mut T::Tx,
        queue: TxQueue<'_>,
        count: c_int,
        frames: *mut *mut bindings::xdp_frame,
        flags: u32,
    ) -> c_int {
        let mut sent = 0;

        while sent < count {
            // SAFETY: As this function requires.
            let Some(frame) =
                (unsafe { Frame::from_raw(*frames.add(sent as usize), T::Tx::FRAGMENTS) })
            else {
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
    }
}
