// SPDX-License-Identifier: GPL-2.0

//! Hardware timestamps: which ones users ask for, and which a device can take.
//!
//! A driver reports them with [`TxSkb::await_timestamp`](crate::skb::TxSkb::await_timestamp), for
//! frames whose [`TxOffloads::timestamp`](crate::skb::TxOffloads::timestamp) asks for it, and with
//! [`RxSkb::set_timestamp`](crate::skb::RxSkb::set_timestamp).
//!
//! C header: `include/linux/net_tstamp.h`

use core::ptr::NonNull;

use kernel::prelude::*;
use net_bindings as bindings;

/// Which received frames get timestamps (`HWTSTAMP_FILTER_*`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RxFilter(u32);

/// Defines filters, each with the name that the core gives it.
macro_rules! filters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        ::kernel::macros::paste! {
            impl RxFilter {
                $(
                    $(#[$doc])*
                    pub const $name: Self =
                        Self(bindings::[<hwtstamp_rx_filters_HWTSTAMP_FILTER_ $name>]);
                )*
            }
        }
    };
}

filters! {
    /// None.
    NONE,
    /// All.
    ALL,
    /// Those that were asked for and some others; only as an answer.
    SOME,
    /// All event messages of PTP version 1 over UDP.
    PTP_V1_L4_EVENT,
    /// Sync messages of PTP version 1 over UDP.
    PTP_V1_L4_SYNC,
    /// Delay_Req messages of PTP version 1 over UDP.
    PTP_V1_L4_DELAY_REQ,
    /// All event messages of PTP version 2 over UDP.
    PTP_V2_L4_EVENT,
    /// Sync messages of PTP version 2 over UDP.
    PTP_V2_L4_SYNC,
    /// Delay_Req messages of PTP version 2 over UDP.
    PTP_V2_L4_DELAY_REQ,
    /// All event messages of PTP version 2 over Ethernet.
    PTP_V2_L2_EVENT,
    /// Sync messages of PTP version 2 over Ethernet.
    PTP_V2_L2_SYNC,
    /// Delay_Req messages of PTP version 2 over Ethernet.
    PTP_V2_L2_DELAY_REQ,
    /// All event messages of PTP version 2 over anything.
    PTP_V2_EVENT,
    /// Sync messages of PTP version 2 over anything.
    PTP_V2_SYNC,
    /// Delay_Req messages of PTP version 2 over anything.
    PTP_V2_DELAY_REQ,
    /// All NTP packets.
    NTP_ALL,
}

/// Which sent frames get timestamps (`HWTSTAMP_TX_*`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TxType {
    /// None.
    Off,
    /// Those whose sender asks for it.
    On,
    /// As [`Self::On`], and the device puts them into Sync messages itself.
    OneStepSync,
    /// As [`Self::OneStepSync`], and it puts them into Pdelay_Resp messages, too.
    OneStepP2p,
}

impl TxType {
    const fn to_raw(self) -> u32 {
        match self {
            Self::Off => bindings::hwtstamp_tx_types_HWTSTAMP_TX_OFF,
            Self::On => bindings::hwtstamp_tx_types_HWTSTAMP_TX_ON,
            Self::OneStepSync => bindings::hwtstamp_tx_types_HWTSTAMP_TX_ONESTEP_SYNC,
            Self::OneStepP2p => bindings::hwtstamp_tx_types_HWTSTAMP_TX_ONESTEP_P2P,
        }
    }

    /// # Errors
    ///
    /// `ERANGE` for a type that is unknown here.
    fn from_raw(raw: u32) -> Result<Self> {
        match raw {
            bindings::hwtstamp_tx_types_HWTSTAMP_TX_OFF => Ok(Self::Off),
            bindings::hwtstamp_tx_types_HWTSTAMP_TX_ON => Ok(Self::On),
            bindings::hwtstamp_tx_types_HWTSTAMP_TX_ONESTEP_SYNC => Ok(Self::OneStepSync),
            bindings::hwtstamp_tx_types_HWTSTAMP_TX_ONESTEP_P2P => Ok(Self::OneStepP2p),
            _ => Err(ERANGE),
        }
    }
}

/// Which frames get timestamps.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Timestamping {
    /// Frames that are sent.
    pub tx: TxType,
    /// Frames that are received.
    pub rx: RxFilter,
}

impl Timestamping {
    /// None.
    pub const OFF: Self = Self {
        tx: TxType::Off,
        rx: RxFilter::NONE,
    };

    /// # Errors
    ///
    /// `ERANGE` for a TX type that is unknown here.
    pub(crate) fn from_config(config: &bindings::kernel_hwtstamp_config) -> Result<Self> {
        // CAST: The core has checked that both are of their enumerations.
        Ok(Self {
            tx: TxType::from_raw(config.tx_type as u32)?,
            rx: RxFilter(config.rx_filter as u32),
        })
    }

    pub(crate) fn to_config(self, config: &mut bindings::kernel_hwtstamp_config) {
        // CAST: Values of small enumerations.
        config.tx_type = self.tx.to_raw() as c_int;
        config.rx_filter = self.rx.0 as c_int;
    }
}

/// What a device can take timestamps of.
#[derive(Copy, Clone)]
pub struct Capabilities {
    /// The clock of the timestamps ([`crate::ptp::Registration::index`]).
    pub clock: u32,
    /// Of which sent frames, besides none.
    pub tx: &'static [TxType],
    /// Of which received frames, besides none.
    pub rx: &'static [RxFilter],
}

impl Capabilities {
    pub(crate) fn to_info(self, info: &mut bindings::kernel_ethtool_ts_info) {
        info.so_timestamping |= bindings::SOF_TIMESTAMPING_RAW_HARDWARE;
        if !self.tx.is_empty() {
            info.so_timestamping |= bindings::SOF_TIMESTAMPING_TX_HARDWARE;
        }
        if !self.rx.is_empty() {
            info.so_timestamping |= bindings::SOF_TIMESTAMPING_RX_HARDWARE;
        }
        // CAST: Clocks are few.
        info.phc_index = self.clock as c_int;
        info.tx_types = 1 << TxType::Off.to_raw();
        for tx in self.tx {
            info.tx_types |= 1 << tx.to_raw();
        }
        info.rx_filters = 1 << RxFilter::NONE.0;
        for filter in self.rx {
            info.rx_filters |= 1 << filter.0;
        }
    }
}

/// A timestamp of a device's, in nanoseconds, as an skb has it.
pub(crate) fn to_raw(time: u64) -> bindings::skb_shared_hwtstamps {
    bindings::skb_shared_hwtstamps {
        __bindgen_anon_1: bindings::skb_shared_hwtstamps__bindgen_ty_1 {
            // CAST: As `ns_to_ktime()` does.
            hwtstamp: time as i64,
        },
    }
}

/// TX timestamp statistics (`struct ethtool_ts_stats`).
#[derive(Copy, Clone, Default)]
pub struct TxTimestampStats {
    /// Timestamps that were delivered.
    pub delivered: u64,
    /// Frames whose timestamp never came.
    pub lost: u64,
    /// Frames that were sent without one, because the device was busy with another.
    pub busy: u64,
}

/// A frame that the device is sending, whose sender wants to know when.
///
/// # Invariants
///
/// The pointer is valid, and owns a reference to the skb.
pub struct AwaitingTimestamp(NonNull<bindings::sk_buff>);

// SAFETY: A reference to an skb may be used and dropped on any thread.
unsafe impl Send for AwaitingTimestamp {}

impl AwaitingTimestamp {
    /// # Safety
    ///
    /// `skb` must be valid, with a reference that the caller passes on.
    pub(crate) unsafe fn new(skb: *mut bindings::sk_buff) -> Self {
        // SAFETY: As this function requires. INVARIANT: As above.
        Self(unsafe { NonNull::new_unchecked(skb) })
    }

    /// Delivers to the sender that it was sent at `time`, in nanoseconds of the device's clock.
    pub fn deliver(self, time: u64) {
        let mut timestamps = to_raw(time);

        // SAFETY: By the type invariant.
        unsafe { bindings::skb_tstamp_tx(self.0.as_ptr(), &mut timestamps) };
    }
}

impl Drop for AwaitingTimestamp {
    fn drop(&mut self) {
        // SAFETY: By the type invariant (`dev_consume_skb_any()`).
        unsafe {
            bindings::dev_kfree_skb_any_reason(
                self.0.as_ptr(),
                bindings::skb_drop_reason_SKB_CONSUMED,
            );
        }
    }
}
