// SPDX-License-Identifier: GPL-2.0

//! Hardware time stamps: what users ask of them, and what a driver says it has.
//!
//! A driver stamps frames that it sends if [`TxOffloads::timestamp`](crate::skb::TxOffloads::timestamp) says so, with
//! [`TxSkb::await_timestamp`](crate::skb::TxSkb::await_timestamp), and frames that it receives with
//! [`RxSkb::set_timestamp`](crate::skb::RxSkb::set_timestamp).
//!
//! C header: `include/linux/net_tstamp.h`

use core::ptr::NonNull;

use kernel::prelude::*;
use net_bindings as bindings;

/// Which received frames are stamped (`HWTSTAMP_FILTER_*`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RxFilter(u32);

impl RxFilter {
    /// None.
    pub const NONE: Self = Self(bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_NONE);
    /// Sync messages of PTP version 2 over Ethernet.
    pub const PTP_V2_L2_SYNC: Self =
        Self(bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_L2_SYNC);
    /// Delay_Req messages of PTP version 2 over Ethernet.
    pub const PTP_V2_L2_DELAY_REQ: Self =
        Self(bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_L2_DELAY_REQ);
    /// All event messages of PTP version 2 over Ethernet.
    pub const PTP_V2_L2_EVENT: Self =
        Self(bindings::hwtstamp_rx_filters_HWTSTAMP_FILTER_PTP_V2_L2_EVENT);
}

/// What is stamped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Stamping {
    /// Frames that are sent, if they ask for it (`HWTSTAMP_TX_ON`).
    pub tx: bool,
    /// Frames that are received.
    pub rx: RxFilter,
}

impl Stamping {
    /// Nothing.
    pub const OFF: Self = Self {
        tx: false,
        rx: RxFilter::NONE,
    };

    /// # Errors
    ///
    /// `ERANGE` for a way to stamp what is sent that no driver here has.
    pub(crate) fn from_config(config: &bindings::kernel_hwtstamp_config) -> Result<Self> {
        // CAST: The core has checked that both are of their enumerations.
        let tx = match config.tx_type as u32 {
            bindings::hwtstamp_tx_types_HWTSTAMP_TX_OFF => false,
            bindings::hwtstamp_tx_types_HWTSTAMP_TX_ON => true,
            _ => return Err(ERANGE),
        };

        Ok(Self {
            tx,
            rx: RxFilter(config.rx_filter as u32),
        })
    }

    pub(crate) fn to_config(self, config: &mut bindings::kernel_hwtstamp_config) {
        // CAST: Values of small enumerations.
        config.tx_type = if self.tx {
            bindings::hwtstamp_tx_types_HWTSTAMP_TX_ON
        } else {
            bindings::hwtstamp_tx_types_HWTSTAMP_TX_OFF
        } as c_int;
        config.rx_filter = self.rx.0 as c_int;
    }
}

/// What a device can stamp; what is sent, always.
#[derive(Copy, Clone)]
pub struct Capabilities {
    /// The clock that the stamps are of ([`crate::ptp::Registration::index`]).
    pub clock: u32,
    /// Which received frames, beside none.
    pub rx: &'static [RxFilter],
}

impl Capabilities {
    pub(crate) fn to_info(self, info: &mut bindings::kernel_ethtool_ts_info) {
        info.so_timestamping |= bindings::SOF_TIMESTAMPING_TX_HARDWARE
            | bindings::SOF_TIMESTAMPING_RX_HARDWARE
            | bindings::SOF_TIMESTAMPING_RAW_HARDWARE;
        // CAST: Clocks are few.
        info.phc_index = self.clock as c_int;
        info.tx_types = 1 << bindings::hwtstamp_tx_types_HWTSTAMP_TX_OFF
            | 1 << bindings::hwtstamp_tx_types_HWTSTAMP_TX_ON;
        info.rx_filters = 1 << RxFilter::NONE.0;
        for filter in self.rx {
            info.rx_filters |= 1 << filter.0;
        }
    }
}

/// How it went with frames that were to be stamped when they were sent.
#[derive(Copy, Clone, Default)]
pub struct TxStampStats {
    /// Frames that were.
    pub stamped: u64,
    /// Frames whose stamp never came.
    pub lost: u64,
    /// Frames that were sent without, because the device was busy with another.
    pub busy: u64,
}

/// A frame that the device is sending, whose sender wants to know when.
///
/// # Invariants
///
/// The pointer is valid, and owns a share in the skb.
pub struct AwaitingStamp(NonNull<bindings::sk_buff>);

// SAFETY: A share in an skb may be used and given back on any thread.
unsafe impl Send for AwaitingStamp {}

impl AwaitingStamp {
    /// # Safety
    ///
    /// `skb` must be valid, and a share in it the caller's to give.
    pub(crate) unsafe fn new(skb: *mut bindings::sk_buff) -> Self {
        // SAFETY: As this function requires. INVARIANT: As above.
        Self(unsafe { NonNull::new_unchecked(skb) })
    }

    /// Tells the sender that it was at `time`, in nanoseconds of the device's clock.
    pub fn deliver(self, time: u64) {
        // SAFETY: By the type invariant.
        unsafe { bindings::net_shim_skb_set_tx_timestamp(self.0.as_ptr(), time) };
    }
}

impl Drop for AwaitingStamp {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::net_shim_skb_consume_any(self.0.as_ptr()) };
    }
}
