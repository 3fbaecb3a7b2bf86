// SPDX-License-Identifier: GPL-2.0

//! What a network driver implements.
//!
//! C header: `include/linux/netdevice.h` (`struct net_device_ops`)

use kernel::{
    error::VTABLE_DEFAULT_ERROR,
    prelude::*, //
};

use crate::{
    device::{
        Locked,
        MacAddress,
        NetDevice, //
    },
    ethtool::ExtAck,
    features::Features,
    hwtstamp::{
        Capabilities,
        Timestamping,
        TxTimestampStats, //
    },
    napi::Poll,
    rx_mode::RxMode,
    skb::SkbRef,
    stats::LinkStats,
    tx::Transmit, //
};

/// What became of features that were to be set ([`Driver::set_features`]).
pub enum FeaturesSet {
    /// They are.
    All,
    /// None is, because the device turned out not to have them all. [`Driver::fix_features`] leaves
    /// out the missing ones from now on, and is called again.
    FixAgain,
}

/// A VLAN that frames can be of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Vlan {
    /// The tag's EtherType (`ETH_P_8021Q`, `ETH_P_8021AD`).
    pub protocol: u16,
    /// The VLAN's number.
    pub id: u16,
}

/// A network driver.
///
/// `Self` is what all contexts may read; it lives as long as the device is registered. Leave out
/// operations that the device does not have: the core does them itself or refuses them.
#[vtable]
pub trait Driver: Sized + Send + Sync {
    /// The control path's state, guarded by the instance lock.
    type Control: Send;

    /// The transmit path's state of one queue, guarded by that queue's lock.
    type Tx: Transmit;

    /// The state of one NAPI, its poll's.
    type Napi: Poll<Driver = Self>;

    /// Brings the interface up (`ndo_open`). On an error everything is as before.
    ///
    /// # Errors
    ///
    /// Any.
    fn open(dev: Locked<'_, Self>, control: &mut Self::Control) -> Result;

    /// Takes the interface down (`ndo_stop`). On return the device does no DMA.
    fn stop(dev: Locked<'_, Self>, control: &mut Self::Control);

    /// Sets which frames are received (`ndo_set_rx_mode_async`). While the interface is down it
    /// only has to be remembered.
    ///
    /// # Errors
    ///
    /// Any, upon which the core tries again.
    fn set_rx_mode(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _mode: &RxMode<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Starts or stops receiving frames of a VLAN (`ndo_vlan_rx_add_vid`). Called for a device
    /// with [`Features::VLAN_FILTER`], with the RTNL and sometimes also the instance lock held.
    ///
    /// # Errors
    ///
    /// Any; all is as before.
    fn set_vlan(&self, _vlan: Vlan, _receive: bool) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Turns a set of features into one that the device supports (`ndo_fix_features`). What is left
    /// out here stays off, and the core requests it again with the next change. It must not change
    /// anything in the device, as the core may call it at any time.
    fn fix_features(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _features: Features,
    ) -> Features {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Turns features on and off (`ndo_set_features`); [`NetDevice::features`] are still the old
    /// ones.
    ///
    /// # Errors
    ///
    /// Any, which the core logs: all is as before.
    fn set_features(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _features: Features,
    ) -> Result<FeaturesSet> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sets the device's MAC address, which the core has validated (`ndo_set_mac_address`). A
    /// device without a filter needs no such function.
    fn set_mac_address(_dev: Locked<'_, Self>, _control: &mut Self::Control, _addr: &MacAddress) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Takes note of a new MTU, which is within the registered limits (`ndo_change_mtu`).
    ///
    /// # Errors
    ///
    /// Any; all is as before.
    fn change_mtu(_dev: Locked<'_, Self>, _control: &mut Self::Control, _mtu: u32) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Limits what TX queue `queue` sends to `rate` Mb/s, or lifts the limit if that is zero
    /// (`ndo_set_tx_maxrate`).
    ///
    /// # Errors
    ///
    /// Any; all is as before.
    fn set_tx_max_rate(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _queue: u32,
        _rate: u32,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Gets the device to send again (`ndo_tx_timeout`): a TX queue was stopped for longer than the
    /// core allows, which it has logged. Called while the interface is up. If it does not help,
    /// it is called again.
    fn tx_timeout(_dev: Locked<'_, Self>, _control: &mut Self::Control) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The features that can be used for `skb` of those in `features` (`ndo_features_check`).
    fn features_check(_dev: &NetDevice<Self>, _skb: &SkbRef<'_>, _features: Features) -> Features {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The timestamps that the device can take with a clock of its own; `None` for none.
    fn timestamp_capabilities(&self) -> Option<Capabilities> {
        None
    }

    /// The timestamps that are taken now (`ndo_hwtstamp_get`).
    fn timestamping(_dev: Locked<'_, Self>, _control: &mut Self::Control) -> Timestamping {
        Timestamping::OFF
    }

    /// Takes these timestamps from now on (`ndo_hwtstamp_set`); also while the interface is down.
    /// Called for a device that has [`Self::timestamp_capabilities`]. Returns what
    /// it takes, which may be more than was asked for.
    ///
    /// # Errors
    ///
    /// `ERANGE` if the device cannot; all is as before.
    fn set_timestamping(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _timestamping: Timestamping,
        _extack: &ExtAck<'_>,
    ) -> Result<Timestamping> {
        Err(EOPNOTSUPP)
    }

    /// TX timestamp statistics. Called for a device that has [`Self::timestamp_capabilities`].
    fn tx_timestamp_stats(&self) -> TxTimestampStats {
        TxTimestampStats::default()
    }

    /// Adds up the device's statistics (`ndo_get_stats64`). Called without a lock, at any time:
    /// it must not access the device.
    fn link_stats(&self) -> LinkStats {
        LinkStats::default()
    }
}
