// SPDX-License-Identifier: GPL-2.0

//! The interface: the core's operations.

mod control;
mod udp_segmentation;
mod updown;

use i82576::{
    filter::Table,
    five_tuple, //
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use net::{
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
    hwtstamp::{
        Capabilities,
        Timestamping,
        TxTimestampStats, //
    },
    napi::Scheduler,
    rx_mode::RxMode,
    skb::SkbRef,
    stats::LinkStats, //
};
use pci_driver::irq::Vectors;

use self::udp_segmentation::segments_udp;
pub(crate) use self::{
    control::{
        Control,
        Settings, //
    },
    updown::{
        Pending,
        Rings, //
    }, //
};
use crate::{
    clock::{
        self,
        RX_FILTERS,
        TX_TYPES, //
    },
    hw::Hw,
    stats::QueueStats,
    tx,
    vector::{
        Interrupt,
        LinkState,
        QueuePair, //
    },
};

/// State that all contexts may read. The interrupt handlers are dropped first.
pub(crate) struct Adapter<'bound> {
    vectors: Vectors<'bound, Interrupt<'bound>>,
    pub(crate) parent: &'bound Device<Bound>,
    pub(crate) hw: Arc<Hw<'bound>>,
    /// `None` if the kernel has no PTP clocks.
    pub(crate) clock: Option<Arc<clock::Registration<'bound>>>,
    pub(crate) stats: KVec<Arc<QueueStats>>,
    /// Of all queue pairs, in use or not.
    pub(crate) schedulers: KVec<Scheduler<Adapter<'bound>>>,
    /// The requested VLANs. Not part of the control state: the core sets them without the
    /// instance lock.
    vlans: Arc<Mutex<Table>>,
    pub(crate) link: Arc<LinkState>,
}

impl<'bound> Adapter<'bound> {
    /// Scatter-gather and checksums stay on: a frame with device memory can be sent in no other
    /// way, and the core would accept it and never send it.
    pub(crate) const FIXED_FEATURES: Features = Features::SG
        .with(Features::IP_CSUM)
        .with(Features::IPV6_CSUM)
        .with(Features::HIGHDMA);

    /// Features that the user may turn off.
    pub(crate) const FEATURES: Features = Features::TSO
        .with(Features::TSO6)
        .with(Features::RXCSUM)
        .with(Features::RXHASH)
        .with(Features::VLAN_INSERT)
        .with(Features::VLAN_STRIP)
        .with(Features::VLAN_FILTER);

    /// Features that the user may turn on, if the device has them.
    pub(crate) const OPTIONAL_FEATURES: Features = Features::UDP_SEGMENTATION;

    pub(crate) fn new(
        vectors: Vectors<'bound, Interrupt<'bound>>,
        parent: &'bound Device<Bound>,
        hw: Arc<Hw<'bound>>,
        clock: Option<Arc<clock::Registration<'bound>>>,
        stats: KVec<Arc<QueueStats>>,
        schedulers: KVec<Scheduler<Adapter<'bound>>>,
        link: Arc<LinkState>,
    ) -> Result<Self> {
        Ok(Self {
            vectors,
            parent,
            hw,
            clock,
            stats,
            schedulers,
            link,
            vlans: Arc::pin_init(new_mutex!(Table::EMPTY), GFP_KERNEL)?,
        })
    }
}

#[vtable]
impl<'bound> Driver for Adapter<'bound> {
    type Control = Control;
    type Tx = tx::Transmitter<'bound>;
    type Napi = QueuePair<'bound>;

    fn open(dev: Locked<'_, Self>, control: &mut Control) -> Result {
        control.settings.xdp = control.program.is_some();
        let rings = Rings::for_all(dev, control, &control.settings)?;

        Self::start(dev, control, rings).inspect_err(|_| Self::retire_pairs(dev, 0..control.in_use))
    }

    fn stop(dev: Locked<'_, Self>, control: &mut Control) {
        Self::halt(dev, control, Pending::Drop);
        Self::retire_pairs(dev, 0..control.in_use);
        dev.device().set_carrier(false);
    }

    fn set_rx_mode(dev: Locked<'_, Self>, control: &mut Control, mode: &RxMode<'_>) -> Result {
        control.filter.set(mode);
        dev.device()
            .driver()
            .hw
            .set_filter(&control.filter, dev.device().features());
        Ok(())
    }

    fn set_vlan(&self, vlan: Vlan, receive: bool) -> Result {
        let mut vlans = self.vlans.lock();

        vlans.set(vlan.id, receive);
        self.hw.set_vlans(&vlans);
        Ok(())
    }

    fn fix_features(dev: Locked<'_, Self>, control: &mut Control, features: Features) -> Features {
        // One bit of the device (CTRL.VME) controls both.
        let fixed = if features.contains(Features::VLAN_STRIP) {
            features.with(Features::VLAN_INSERT)
        } else {
            features.without(Features::VLAN_INSERT)
        };
        // The core asks for it again with each change.
        let was_fixed = core::mem::replace(&mut control.fixed_vlan_insert, fixed != features);
        if fixed != features && !was_fixed {
            dev_info!(
                dev.device().driver().parent,
                "tx-vlan-hw-insert follows rx-vlan-hw-parse: the device can't have one alone\n"
            );
        }
        let features = fixed;

        if control.segments_udp == Some(false) {
            features.without(Features::UDP_SEGMENTATION)
        } else {
            features
        }
    }

    fn set_features(
        dev: Locked<'_, Self>,
        control: &mut Control,
        features: Features,
    ) -> Result<FeaturesSet> {
        let hw = &dev.device().driver().hw;

        if features.contains(Features::UDP_SEGMENTATION) && !segments_udp(dev, control)? {
            return Ok(FeaturesSet::FixAgain);
        }
        // The packet path looks at the others itself.
        hw.set_vlan_tags(features);
        hw.set_filter(&control.filter, features);
        if !features.contains(Features::NTUPLE) {
            if let Some(table) = &mut control.five_tuples {
                *table = five_tuple::Table::EMPTY;
                hw.set_five_tuples(table);
            }
        }
        Ok(FeaturesSet::All)
    }

    fn set_mac_address(dev: Locked<'_, Self>, _control: &mut Control, addr: &MacAddress) {
        dev.device().driver().hw.set_mac_address(addr);
    }

    fn change_mtu(dev: Locked<'_, Self>, control: &mut Control, mtu: u32) -> Result {
        let settings = Settings {
            mtu,
            ..control.settings
        };

        if !control.xsk.fit(mtu) {
            return Err(EINVAL);
        }

        Self::reconfigure(dev, control, settings)
    }

    fn set_tx_max_rate(
        dev: Locked<'_, Self>,
        _control: &mut Control,
        queue: u32,
        rate: u32,
    ) -> Result {
        dev.device().driver().hw.set_tx_rate(queue, rate);
        Ok(())
    }

    fn tx_timeout(dev: Locked<'_, Self>, control: &mut Control) {
        // Nothing requests another restart after one that failed, and the device may respond by now.
        let restarted = Self::restart(dev, control).or_else(|_| Self::restart(dev, control));

        if let Err(error) = restarted {
            dev_err!(
                dev.device().driver().parent,
                "not restarted after a transmit timeout: {error:?}\n"
            );
        }
    }

    fn features_check(_dev: &NetDevice<Self>, skb: &SkbRef<'_>, features: Features) -> Features {
        tx::supported(skb, features)
    }

    fn timestamp_capabilities(&self) -> Option<Capabilities> {
        self.clock.as_ref().map(|clock| Capabilities {
            clock: clock.index(),
            tx: TX_TYPES,
            rx: RX_FILTERS,
        })
    }

    fn timestamping(_dev: Locked<'_, Self>, control: &mut Control) -> Timestamping {
        clock::user_timestamping(&control.timestamping)
    }

    fn set_timestamping(
        dev: Locked<'_, Self>,
        control: &mut Control,
        timestamping: Timestamping,
        extack: &ExtAck<'_>,
    ) -> Result<Timestamping> {
        control.timestamping = clock::timestamping(timestamping).inspect_err(|_| {
            extack
                .set(c"RX timestamps are of PTP v2 over Ethernet only, TX timestamps not one-step")
        })?;
        if let Some(clock) = &dev.device().driver().clock {
            clock.set_timestamping(&control.timestamping);
        }
        Ok(timestamping)
    }

    fn tx_timestamp_stats(&self) -> TxTimestampStats {
        self.clock
            .as_ref()
            .map_or_else(TxTimestampStats::default, |clock| clock.tx_stats())
    }

    fn link_stats(&self) -> LinkStats {
        let mut sum = LinkStats::default();

        for stats in &self.stats {
            sum.rx_packets += stats.rx_packets.get();
            sum.rx_bytes += stats.rx_bytes.get();
            sum.rx_dropped += stats.rx_dropped();
            sum.rx_missed_errors += stats.rx_missed.get();
            sum.rx_errors += stats.rx_errors.get();
            sum.tx_packets += stats.tx_packets.get();
            sum.tx_bytes += stats.tx_bytes.get();
            sum.tx_dropped += stats.tx_dropped.get();
        }
        sum
    }
}
