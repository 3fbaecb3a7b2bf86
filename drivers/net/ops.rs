// SPDX-License-Identifier: GPL-2.0

//! From the core's callbacks (`struct net_device_ops`) to [`Driver`].
//!
//! All of them but transmit, features_check and stats run under the instance lock, which
//! `request_ops_lock` asks for.

use core::marker::PhantomData;

use kernel::{
    error::from_result,
    ffi::{
        c_uint,
        c_ulong, //
    },
    prelude::*, //
};
use net_bindings as bindings;

use crate::{
    device::{
        Locked,
        MacAddress,
        NetDevice, //
    },
    driver::{
        Driver,
        FeaturesSet,
        Vlan, //
    },
    ethtool::ExtAck,
    features::Features,
    hwtstamp::Timestamping,
    once::write_once,
    rx_mode::{
        Addresses,
        RxMode, //
    },
    skb::{
        SkbRef,
        TxSkb, //
    },
    tx::{
        Transmit,
        TxQueue, //
    }, //
};

/// Work that waits for the instance lock (`netdev_work_sched()`).
const TX_TIMEOUT: c_ulong = 1 << 0;

impl<T: Driver> NetDevice<T> {
    /// Has [`Driver::tx_timeout`] called soon, as if a TX queue hung: the device has to be started
    /// anew. Requests are dropped that are made while it runs, or where interrupts are off: netpoll's poll
    /// may be there.
    pub fn schedule_tx_timeout(&self) {
        const { assert!(T::HAS_TX_TIMEOUT) };
        // SAFETY: The device is valid; the core cancels the work when it unregisters it.
        unsafe { bindings::net_shim_work_sched(self.as_raw(), TX_TIMEOUT) };
    }
}

/// The C operations of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

impl<T: Driver> Table<T> {
    pub(crate) const NETDEV: &'static bindings::net_device_ops = &bindings::net_device_ops {
        ndo_open: Some(Self::open),
        ndo_stop: Some(Self::stop),
        ndo_start_xmit: Some(Self::start_xmit),
        ndo_select_queue: Some(Self::select_queue),
        ndo_set_mac_address: Some(Self::set_mac_address),
        ndo_validate_addr: Some(bindings::eth_validate_addr),
        ndo_hwtstamp_get: Some(Self::hwtstamp_get),
        ndo_hwtstamp_set: Some(Self::hwtstamp_set),
        ndo_work: Some(Self::work),
        ndo_get_stats64: if T::HAS_LINK_STATS {
            Some(Self::stats64)
        } else {
            None
        },
        ndo_features_check: if T::HAS_FEATURES_CHECK {
            Some(Self::features_check)
        } else {
            None
        },
        ndo_set_rx_mode_async: if T::HAS_SET_RX_MODE {
            Some(Self::set_rx_mode)
        } else {
            None
        },
        ndo_vlan_rx_add_vid: if T::HAS_SET_VLAN {
            Some(Self::add_vlan)
        } else {
            None
        },
        ndo_vlan_rx_kill_vid: if T::HAS_SET_VLAN {
            Some(Self::remove_vlan)
        } else {
            None
        },
        ndo_fix_features: if T::HAS_FIX_FEATURES {
            Some(Self::fix_features)
        } else {
            None
        },
        ndo_set_features: if T::HAS_SET_FEATURES {
            Some(Self::set_features)
        } else {
            None
        },
        ndo_change_mtu: if T::HAS_CHANGE_MTU {
            Some(Self::change_mtu)
        } else {
            None
        },
        ndo_set_tx_maxrate: if T::HAS_SET_TX_MAX_RATE {
            Some(Self::set_tx_max_rate)
        } else {
            None
        },
        ndo_tx_timeout: if T::HAS_TX_TIMEOUT {
            Some(Self::tx_timeout)
        } else {
            None
        },
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_open`.
    unsafe extern "C" fn open(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };

        from_result(|| T::open(dev, control).map(|()| 0))
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_stop`.
    unsafe extern "C" fn stop(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };

        T::stop(dev, control);
        0
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_start_xmit`.
    unsafe extern "C" fn start_xmit(
        skb: *mut bindings::sk_buff,
        dev: *mut bindings::net_device,
    ) -> bindings::netdev_tx_t {
        // SAFETY: The core calls with a device of `T`.
        let net_device = unsafe { NetDevice::<T>::from_raw(dev) };
        // SAFETY: The core gives a valid skb to the driver.
        let index = unsafe { SkbRef::from_raw(skb) }.map_or(0, |skb| u32::from(skb.queue()));
        let Some(slot) = net_device.tx(index) else {
            // SAFETY: As above; there is no such queue.
            drop(unsafe { TxSkb::from_raw(skb) });
            return bindings::netdev_tx_NETDEV_TX_OK;
        };
        // SAFETY: The core holds the lock of the skb's queue, and the device is registered.
        let (state, queue) = unsafe { (slot.state(), TxQueue::new(dev, index)) };

        let Some(state) = state else {
            // The queue is being changed: the core keeps the frame until it is woken.
            queue.stop();
            return bindings::netdev_tx_NETDEV_TX_BUSY;
        };
        // SAFETY: As above.
        if let Some(skb) = unsafe { TxSkb::from_raw(skb) } {
            // SAFETY: We are in the transmit path.
            let more = unsafe { bindings::net_shim_xmit_more() };

            state.transmit(skb, queue, more);
        }
        bindings::netdev_tx_NETDEV_TX_OK
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_features_check`.
    unsafe extern "C" fn features_check(
        skb: *mut bindings::sk_buff,
        dev: *mut bindings::net_device,
        features: bindings::netdev_features_t,
    ) -> bindings::netdev_features_t {
        // SAFETY: The core calls with a device of `T` and a valid skb.
        let (dev, skb) = unsafe { (NetDevice::<T>::from_raw(dev), SkbRef::from_raw(skb)) };

        match skb {
            Some(skb) => T::features_check(dev, &skb, Features::from_raw(features)).as_raw(),
            None => features,
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_set_rx_mode_async`.
    unsafe extern "C" fn set_rx_mode(
        dev: *mut bindings::net_device,
        uc: *mut bindings::netdev_hw_addr_list,
        mc: *mut bindings::netdev_hw_addr_list,
    ) -> c_int {
        // SAFETY: The core calls with a valid device and snapshots of its lists.
        let (flags, unicast, multicast) =
            unsafe { ((*dev).flags, Addresses::of(uc), Addresses::of(mc)) };
        let mode = RxMode {
            promiscuous: flags & bindings::net_device_flags_IFF_PROMISC != 0,
            all_multicast: flags & bindings::net_device_flags_IFF_ALLMULTI != 0,
            unicast,
            multicast,
        };
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };

        from_result(|| T::set_rx_mode(dev, control, &mode).map(|()| 0))
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_vlan_rx_add_vid`.
    unsafe extern "C" fn add_vlan(
        dev: *mut bindings::net_device,
        protocol: bindings::__be16,
        id: u16,
    ) -> c_int {
        // SAFETY: The core calls with a device of `T`.
        let dev = unsafe { NetDevice::<T>::from_raw(dev) };
        let protocol = u16::from_be(protocol);

        from_result(|| {
            dev.driver()
                .set_vlan(Vlan { protocol, id }, true)
                .map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_vlan_rx_kill_vid`.
    unsafe extern "C" fn remove_vlan(
        dev: *mut bindings::net_device,
        protocol: bindings::__be16,
        id: u16,
    ) -> c_int {
        // SAFETY: As above.
        let dev = unsafe { NetDevice::<T>::from_raw(dev) };
        let protocol = u16::from_be(protocol);

        from_result(|| {
            dev.driver()
                .set_vlan(Vlan { protocol, id }, false)
                .map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_fix_features`.
    unsafe extern "C" fn fix_features(
        dev: *mut bindings::net_device,
        features: bindings::netdev_features_t,
    ) -> bindings::netdev_features_t {
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };

        T::fix_features(dev, control, Features::from_raw(features)).as_raw()
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_set_features`.
    unsafe extern "C" fn set_features(
        dev: *mut bindings::net_device,
        features: bindings::netdev_features_t,
    ) -> c_int {
        // SAFETY: The core holds the lock.
        let (locked, control) = unsafe { Locked::<T>::new(dev) };

        from_result(|| {
            match T::set_features(locked, control, Features::from_raw(features))? {
                FeaturesSet::All => Ok(0),
                FeaturesSet::FixAgain => {
                    // SAFETY: The core holds the RTNL and the lock, as this wants it, and `control`
                    // is not used any more.
                    unsafe { bindings::netdev_update_features(dev) };
                    // The core leaves alone what was set meanwhile.
                    Ok(1)
                }
            }
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_set_mac_address`.
    unsafe extern "C" fn set_mac_address(
        raw: *mut bindings::net_device,
        addr: *mut c_void,
    ) -> c_int {
        // SAFETY: The core calls with a valid device and a `struct sockaddr`.
        let err = unsafe { bindings::eth_prepare_mac_addr_change(raw, addr) };
        if err < 0 {
            return err;
        }
        // SAFETY: As above.
        unsafe { bindings::eth_commit_mac_addr_change(raw, addr) };
        // SAFETY: The device's address has at least 6 bytes, and the core holds the lock.
        let addr: MacAddress = unsafe { *(*raw).dev_addr.cast() };
        // SAFETY: As above.
        let (dev, control) = unsafe { Locked::<T>::new(raw) };

        if T::HAS_SET_MAC_ADDRESS {
            T::set_mac_address(dev, control, &addr);
        }
        0
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_change_mtu`.
    unsafe extern "C" fn change_mtu(raw: *mut bindings::net_device, mtu: c_int) -> c_int {
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(raw) };

        from_result(|| {
            let mtu = u32::try_from(mtu)?;

            T::change_mtu(dev, control, mtu)?;
            // SAFETY: The device is valid.
            unsafe { write_once(&raw mut (*raw).mtu, mtu) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_set_tx_maxrate`.
    unsafe extern "C" fn set_tx_max_rate(
        dev: *mut bindings::net_device,
        queue: c_int,
        rate: u32,
    ) -> c_int {
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };

        from_result(|| {
            let queue = u32::try_from(queue)?;

            T::set_tx_max_rate(dev, control, queue, rate).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_hwtstamp_get`.
    unsafe extern "C" fn hwtstamp_get(
        dev: *mut bindings::net_device,
        config: *mut bindings::kernel_hwtstamp_config,
    ) -> c_int {
        // SAFETY: The core holds the lock, and calls with a valid structure.
        let ((dev, control), config) = unsafe { (Locked::<T>::new(dev), &mut *config) };

        if dev.device().driver().timestamp_capabilities().is_none() {
            return EOPNOTSUPP.to_errno();
        }
        T::timestamping(dev, control).to_config(config);
        0
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_hwtstamp_set`.
    unsafe extern "C" fn hwtstamp_set(
        dev: *mut bindings::net_device,
        config: *mut bindings::kernel_hwtstamp_config,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core holds the lock, and calls with valid structures.
        let ((dev, control), config, extack) = unsafe {
            (
                Locked::<T>::new(dev),
                &mut *config,
                ExtAck::from_raw(extack),
            )
        };

        from_result(|| {
            if dev.device().driver().timestamp_capabilities().is_none() {
                return Err(EOPNOTSUPP);
            }
            let timestamping = Timestamping::from_config(config)?;

            T::set_timestamping(dev, control, timestamping, &extack)?.to_config(config);
            Ok(0)
        })
    }

    /// Runs in a timer, so the driver is asked later.
    ///
    /// # Safety
    ///
    /// Only the core may call it, as `ndo_tx_timeout`.
    unsafe extern "C" fn tx_timeout(dev: *mut bindings::net_device, _queue: c_uint) {
        // SAFETY: The core calls with a valid device, and cancels the work when it unregisters it.
        unsafe { bindings::net_shim_work_sched(dev, TX_TIMEOUT) };
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_work`.
    unsafe extern "C" fn work(dev: *mut bindings::net_device, events: c_ulong) {
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };

        if T::HAS_TX_TIMEOUT && events & TX_TIMEOUT != 0 && dev.is_running() {
            T::tx_timeout(dev, control);
            // The core holds RTNL until no device has work pending (`netdev_work_proc()`): one whose queues
            // never stop would hold it forever.
            // SAFETY: The device is valid.
            unsafe { bindings::netdev_work_cancel(dev.device().as_raw(), TX_TIMEOUT) };
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_get_stats64`.
    unsafe extern "C" fn stats64(
        dev: *mut bindings::net_device,
        out: *mut bindings::rtnl_link_stats64,
    ) {
        // SAFETY: The core calls with a device of `T`.
        let stats = unsafe { NetDevice::<T>::from_raw(dev) }
            .driver()
            .link_stats();

        // SAFETY: The core calls with a zeroed structure, which may be within a netlink message,
        // and is aligned as its attributes are.
        unsafe {
            out.write_unaligned(bindings::rtnl_link_stats64 {
                rx_packets: stats.rx_packets,
                rx_bytes: stats.rx_bytes,
                rx_dropped: stats.rx_dropped,
                rx_missed_errors: stats.rx_missed_errors,
                rx_errors: stats.rx_errors,
                rx_crc_errors: stats.rx_crc_errors,
                tx_packets: stats.tx_packets,
                tx_bytes: stats.tx_bytes,
                tx_dropped: stats.tx_dropped,
                ..pin_init::zeroed()
            })
        };
    }
}
