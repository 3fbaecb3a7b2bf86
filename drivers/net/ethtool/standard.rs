// SPDX-License-Identifier: GPL-2.0

//! Statistics that mean the same for every driver: IEEE 802.3 and RFC 2819 (`ethtool -S --groups`,
//! `ethtool -I -a`).

use kernel::{
    error::VTABLE_DEFAULT_ERROR,
    prelude::*, //
};
use net_bindings as bindings;

use super::Callbacks;
use crate::device::{
    Driver,
    Locked, //
};

/// Entries of the core's list of sizes, with the one that ends it.
const MAX_SIZES: usize = bindings::ETHTOOL_RMON_HIST_MAX as usize;

/// Sizes by which frames are counted.
pub struct Sizes([bindings::ethtool_rmon_hist_range; MAX_SIZES]);

impl Sizes {
    /// These sizes, from and to, in bytes with FCS; at most ten of them.
    #[inline]
    pub const fn new(sizes: &[(u16, u16)]) -> Self {
        assert!(sizes.len() < MAX_SIZES, "the last one must be empty");
        let mut list = [bindings::ethtool_rmon_hist_range { low: 0, high: 0 }; MAX_SIZES];
        let mut i = 0;

        while i < sizes.len() {
            list[i].low = sizes[i].0;
            list[i].high = sizes[i].1;
            i += 1;
        }
        Self(list)
    }
}

/// Defines statistics that are those of a C structure.
macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident of $raw:ident {
        $($(#[$field_doc:meta])* $field:ident = $raw_field:ident,)*
    })*) => {
        $(
            $(#[$doc])*
            ///
            /// `None` is what the device does not count.
            #[derive(Default)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: Option<u64>,)*
            }

            impl $name {
                /// Leaves untouched what is not counted.
                ///
                /// # Safety
                ///
                /// `out` must be valid.
                unsafe fn put(&self, out: *mut bindings::$raw) {
                    $(
                        if let Some(value) = self.$field {
                            // SAFETY: As this function requires. The fields are in an anonymous
                            // union of the same structure with and without a name.
                            unsafe { (*out).__bindgen_anon_1.__bindgen_anon_1.$raw_field = value };
                        }
                    )*
                }
            }
        )*
    };
}

statistics! {
    /// MAC statistics (`struct ethtool_eth_mac_stats`).
    MacStats of ethtool_eth_mac_stats {
        /// Frames sent.
        tx_frames = FramesTransmittedOK,
        /// Frames sent after one collision.
        single_collisions = SingleCollisionFrames,
        /// Frames sent after several collisions.
        multiple_collisions = MultipleCollisionFrames,
        /// Frames received.
        rx_frames = FramesReceivedOK,
        /// Frames received with a bad frame check sequence.
        frame_check_errors = FrameCheckSequenceErrors,
        /// Frames received that are no whole number of bytes.
        alignment_errors = AlignmentErrors,
        /// Bytes sent.
        tx_octets = OctetsTransmittedOK,
        /// Frames whose first attempt had to wait.
        deferred = FramesWithDeferredXmissions,
        /// Collisions late in a frame.
        late_collisions = LateCollisions,
        /// Frames given up after too many collisions.
        excessive_collisions = FramesAbortedDueToXSColls,
        /// Times that the carrier was not sensed while sending.
        carrier_sense_errors = CarrierSenseErrors,
        /// Bytes received.
        rx_octets = OctetsReceivedOK,
        /// Multicast frames sent.
        tx_multicast = MulticastFramesXmittedOK,
        /// Broadcast frames sent.
        tx_broadcast = BroadcastFramesXmittedOK,
        /// Multicast frames received.
        rx_multicast = MulticastFramesReceivedOK,
        /// Broadcast frames received.
        rx_broadcast = BroadcastFramesReceivedOK,
        /// Frames whose length field is not that of their payload.
        length_errors = InRangeLengthErrors,
        /// Frames longer than allowed.
        too_long = FrameTooLongErrors,
    }
    /// MAC control statistics (`struct ethtool_eth_ctrl_stats`).
    ControlStats of ethtool_eth_ctrl_stats {
        /// Control frames sent.
        tx_frames = MACControlFramesTransmitted,
        /// Control frames received.
        rx_frames = MACControlFramesReceived,
        /// Control frames received that say something unknown.
        unsupported = UnsupportedOpcodesReceived,
    }
    /// Flow control statistics (`struct ethtool_pause_stats`).
    PauseStats of ethtool_pause_stats {
        /// Pause frames sent.
        tx_frames = tx_pause_frames,
        /// Pause frames received.
        rx_frames = rx_pause_frames,
    }
    /// Frames that are too short or too long (`struct ethtool_rmon_stats`).
    SizeErrors of ethtool_rmon_stats {
        /// Frames too short.
        undersize = undersize_pkts,
        /// Frames too long.
        oversize = oversize_pkts,
        /// Frames too short, with a bad frame check sequence.
        fragments = fragments,
        /// Frames too long, with a bad frame check sequence.
        jabbers = jabbers,
    }
}

/// Counts of frames by size.
pub struct SizeStats<'a> {
    /// What is of no allowed size.
    pub errors: SizeErrors,
    /// Frames received, of each of [`StandardStatistics::SIZES`].
    pub rx: &'a [u64],
    /// Frames sent, likewise.
    pub tx: &'a [u64],
}

/// A driver of a device that counts what standards define.
#[vtable]
pub trait StandardStatistics: Driver {
    /// The sizes by which frames are counted.
    const SIZES: &'static Sizes = &Sizes::new(&[]);

    /// MAC statistics.
    fn mac_stats(_dev: Locked<'_, Self>, _control: &mut Self::Control) -> MacStats {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// MAC control statistics.
    fn control_stats(_dev: Locked<'_, Self>, _control: &mut Self::Control) -> ControlStats {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Flow control statistics.
    fn pause_stats(_dev: Locked<'_, Self>, _control: &mut Self::Control) -> PauseStats {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Frames by size.
    fn size_stats<'a>(_dev: Locked<'_, Self>, _control: &'a mut Self::Control) -> SizeStats<'a> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: StandardStatistics> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_eth_mac_stats`.
    pub(super) unsafe extern "C" fn get_eth_mac_stats(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_eth_mac_stats,
    ) {
        // SAFETY: The core holds the lock and calls with a valid structure.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);

            T::mac_stats(dev, control).put(out);
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_eth_ctrl_stats`.
    pub(super) unsafe extern "C" fn get_eth_ctrl_stats(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_eth_ctrl_stats,
    ) {
        // SAFETY: As above.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);

            T::control_stats(dev, control).put(out);
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_pause_stats`.
    pub(super) unsafe extern "C" fn get_pause_stats(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_pause_stats,
    ) {
        // SAFETY: As above.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);

            T::pause_stats(dev, control).put(out);
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_rmon_stats`.
    pub(super) unsafe extern "C" fn get_rmon_stats(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_rmon_stats,
        sizes: *mut *const bindings::ethtool_rmon_hist_range,
    ) {
        // SAFETY: As above; the list lives as long as the module.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);
            let stats = T::size_stats(dev, control);
            let counts = &mut (*out).__bindgen_anon_1.__bindgen_anon_1;

            for (to, from) in counts.hist.iter_mut().zip(stats.rx) {
                *to = *from;
            }
            for (to, from) in counts.hist_tx.iter_mut().zip(stats.tx) {
                *to = *from;
            }
            stats.errors.put(out);
            *sizes = T::SIZES.0.as_ptr();
        }
    }
}
