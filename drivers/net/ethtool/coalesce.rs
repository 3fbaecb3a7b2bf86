// SPDX-License-Identifier: GPL-2.0

//! Interrupt coalescing (`ethtool -c`, `-C`, and `--per-queue`).

use kernel::{
    error::{
        from_result,
        VTABLE_DEFAULT_ERROR, //
    },
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    Callbacks,
    ExtAck, //
};
use crate::device::{
    Driver,
    Locked, //
};

/// A value of the core's as one of [`Coalesce`], and back.
trait Value<Raw>: Copy {
    fn from_raw(raw: Raw) -> Self;
    fn to_raw(self) -> Raw;
}

impl Value<u32> for u32 {
    fn from_raw(raw: u32) -> Self {
        raw
    }

    fn to_raw(self) -> u32 {
        self
    }
}

impl Value<u32> for bool {
    fn from_raw(raw: u32) -> Self {
        raw != 0
    }

    fn to_raw(self) -> u32 {
        self.into()
    }
}

impl Value<u8> for bool {
    fn from_raw(raw: u8) -> Self {
        raw != 0
    }

    fn to_raw(self) -> u8 {
        self.into()
    }
}

/// Defines [`Coalesce`] and [`CoalesceParameters`].
macro_rules! parameters {
    (|$user:ident, $kernel:ident| $(
        $(#[$doc:meta])*
        $field:ident: $type:ty, $name:ident = $raw:ident.$raw_field:ident,
    )*) => {
        /// How interrupts of a queue, or of all, are coalesced (`struct ethtool_coalesce`). What
        /// the device lacks is 0.
        #[derive(Copy, Clone, PartialEq, Eq, Zeroable)]
        pub struct Coalesce {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Coalesce {
            /// All parameters are 0.
            pub const ZERO: Self = pin_init::zeroed();

            fn from_raw(
                $user: &bindings::ethtool_coalesce,
                $kernel: &bindings::kernel_ethtool_coalesce,
            ) -> Self {
                Self { $($field: Value::from_raw($raw.$raw_field),)* }
            }

            fn write_to(
                &self,
                $user: &mut bindings::ethtool_coalesce,
                $kernel: &mut bindings::kernel_ethtool_coalesce,
            ) {
                $($raw.$raw_field = self.$field.to_raw();)*
            }
        }

        ::kernel::macros::paste! {
            impl CoalesceParameters {
                $(
                    #[doc = concat!("[`Coalesce::", stringify!($field), "`].")]
                    pub const $name: Self = Self(bindings::[<NET_SHIM_COALESCE_ $name>]);
                )*
            }
        }
    };
}

parameters! { |user, kernel|
    /// Microseconds from a received frame to an interrupt, at most; where it adapts, only at first.
    rx_usecs: u32, RX_USECS = user.rx_coalesce_usecs,
    /// Received frames until an interrupt, at most.
    rx_max_frames: u32, RX_MAX_FRAMES = user.rx_max_coalesced_frames,
    /// As [`Self::rx_usecs`], while an interrupt is being handled.
    rx_usecs_irq: u32, RX_USECS_IRQ = user.rx_coalesce_usecs_irq,
    /// As [`Self::rx_max_frames`], while an interrupt is being handled.
    rx_max_frames_irq: u32, RX_MAX_FRAMES_IRQ = user.rx_max_coalesced_frames_irq,
    /// Microseconds from a sent frame to an interrupt, at most.
    tx_usecs: u32, TX_USECS = user.tx_coalesce_usecs,
    /// Sent frames until an interrupt, at most.
    tx_max_frames: u32, TX_MAX_FRAMES = user.tx_max_coalesced_frames,
    /// As [`Self::tx_usecs`], while an interrupt is being handled.
    tx_usecs_irq: u32, TX_USECS_IRQ = user.tx_coalesce_usecs_irq,
    /// As [`Self::tx_max_frames`], while an interrupt is being handled.
    tx_max_frames_irq: u32, TX_MAX_FRAMES_IRQ = user.tx_max_coalesced_frames_irq,
    /// Microseconds between two updates of statistics in memory.
    stats_block_usecs: u32, STATS_BLOCK_USECS = user.stats_block_coalesce_usecs,
    /// RX coalescing adapts to what is received.
    adaptive_rx: bool, USE_ADAPTIVE_RX = user.use_adaptive_rx_coalesce,
    /// TX coalescing adapts to what is sent.
    adaptive_tx: bool, USE_ADAPTIVE_TX = user.use_adaptive_tx_coalesce,
    /// Below this packet rate the parameters for a low rate are used.
    pkt_rate_low: u32, PKT_RATE_LOW = user.pkt_rate_low,
    /// As [`Self::rx_usecs`], at a low rate.
    rx_usecs_low: u32, RX_USECS_LOW = user.rx_coalesce_usecs_low,
    /// As [`Self::rx_max_frames`], at a low rate.
    rx_max_frames_low: u32, RX_MAX_FRAMES_LOW = user.rx_max_coalesced_frames_low,
    /// As [`Self::tx_usecs`], at a low rate.
    tx_usecs_low: u32, TX_USECS_LOW = user.tx_coalesce_usecs_low,
    /// As [`Self::tx_max_frames`], at a low rate.
    tx_max_frames_low: u32, TX_MAX_FRAMES_LOW = user.tx_max_coalesced_frames_low,
    /// Above this packet rate the parameters for a high rate are used.
    pkt_rate_high: u32, PKT_RATE_HIGH = user.pkt_rate_high,
    /// As [`Self::rx_usecs`], at a high rate.
    rx_usecs_high: u32, RX_USECS_HIGH = user.rx_coalesce_usecs_high,
    /// As [`Self::rx_max_frames`], at a high rate.
    rx_max_frames_high: u32, RX_MAX_FRAMES_HIGH = user.rx_max_coalesced_frames_high,
    /// As [`Self::tx_usecs`], at a high rate.
    tx_usecs_high: u32, TX_USECS_HIGH = user.tx_coalesce_usecs_high,
    /// As [`Self::tx_max_frames`], at a high rate.
    tx_max_frames_high: u32, TX_MAX_FRAMES_HIGH = user.tx_max_coalesced_frames_high,
    /// Seconds between two samples of the packet rate.
    rate_sample_interval: u32, RATE_SAMPLE_INTERVAL = user.rate_sample_interval,
    /// The RX timer restarts with each completion.
    cqe_mode_rx: bool, USE_CQE_RX = kernel.use_cqe_mode_rx,
    /// The TX timer restarts with each completion.
    cqe_mode_tx: bool, USE_CQE_TX = kernel.use_cqe_mode_tx,
    /// Bytes that are aggregated to one transmission, at most.
    tx_aggr_max_bytes: u32, TX_AGGR_MAX_BYTES = kernel.tx_aggr_max_bytes,
    /// Frames that are aggregated to one transmission, at most.
    tx_aggr_max_frames: u32, TX_AGGR_MAX_FRAMES = kernel.tx_aggr_max_frames,
    /// Microseconds that a frame waits for others to be aggregated with, at most.
    tx_aggr_time_usecs: u32, TX_AGGR_TIME_USECS = kernel.tx_aggr_time_usecs,
    /// Received frames in one completion, at most.
    rx_cqe_frames: u32, RX_CQE_FRAMES = kernel.rx_cqe_frames,
    /// Nanoseconds that a completion waits for more received frames, at most.
    rx_cqe_nsecs: u32, RX_CQE_NSECS = kernel.rx_cqe_nsecs,
}

/// What of [`Coalesce`] a device has (`ETHTOOL_COALESCE_*`), as a set.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct CoalesceParameters(u32);

impl CoalesceParameters {
    /// Returns both sets together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn as_raw(self) -> u32 {
        self.0
    }
}

/// A driver whose interrupts are coalesced.
#[vtable]
pub trait Coalescing: Driver {
    /// What the device has. The core refuses all else.
    const COALESCE_PARAMETERS: CoalesceParameters;

    /// Each queue has parameters of its own.
    const COALESCE_PER_QUEUE: bool = false;

    /// How interrupts are coalesced: those of RX and TX queue `queue`, or, for none in particular,
    /// those of all; where queues differ, of the first one.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue in use.
    fn coalesce(control: &Self::Control, queue: Option<u32>) -> Result<Coalesce>;

    /// Coalesces interrupts: those of RX and TX queue `queue`, or of all.
    ///
    /// # Errors
    ///
    /// `EINVAL` for what the device cannot do or if there is no such queue in use, `ENOMEM`;
    /// nothing is changed.
    fn set_coalesce(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _queue: Option<u32>,
        _coalesce: Coalesce,
        _extack: &ExtAck<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: Coalescing> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_coalesce`.
    pub(super) unsafe extern "C" fn get_coalesce(
        dev: *mut bindings::net_device,
        user: *mut bindings::ethtool_coalesce,
        kernel: *mut bindings::kernel_ethtool_coalesce,
        _extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with valid structures.
        let ((_, control), user, kernel) =
            unsafe { (Locked::<T>::new(dev), &mut *user, &mut *kernel) };

        from_result(|| {
            T::coalesce(control, None)?.write_to(user, kernel);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_coalesce`.
    pub(super) unsafe extern "C" fn set_coalesce(
        dev: *mut bindings::net_device,
        user: *mut bindings::ethtool_coalesce,
        kernel: *mut bindings::kernel_ethtool_coalesce,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with valid structures, or null for the last.
        let ((dev, control), request, extack) = unsafe {
            (
                Locked::<T>::new(dev),
                Coalesce::from_raw(&*user, &*kernel),
                ExtAck::from_raw(extack),
            )
        };

        from_result(|| T::set_coalesce(dev, control, None, request, &extack).map(|()| 0))
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_per_queue_coalesce`.
    pub(super) unsafe extern "C" fn get_per_queue_coalesce(
        dev: *mut bindings::net_device,
        queue: u32,
        user: *mut bindings::ethtool_coalesce,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((_, control), user) = unsafe { (Locked::<T>::new(dev), &mut *user) };

        from_result(|| {
            T::coalesce(control, Some(queue))?.write_to(user, &mut pin_init::zeroed());
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_per_queue_coalesce`.
    pub(super) unsafe extern "C" fn set_per_queue_coalesce(
        dev: *mut bindings::net_device,
        queue: u32,
        user: *mut bindings::ethtool_coalesce,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((dev, control), user) = unsafe { (Locked::<T>::new(dev), &*user) };
        // SAFETY: There is no message.
        let extack = unsafe { ExtAck::from_raw(core::ptr::null_mut()) };

        from_result(|| {
            // What cannot be set in this way stays as it is.
            let mut kernel = pin_init::zeroed();
            T::coalesce(control, Some(queue))?.write_to(&mut pin_init::zeroed(), &mut kernel);
            let request = Coalesce::from_raw(user, &kernel);

            T::set_coalesce(dev, control, Some(queue), request, &extack).map(|()| 0)
        })
    }
}
