// SPDX-License-Identifier: GPL-2.0

//! The interface: its state, and how it goes up and down.

use core::ops::Range;

use i82576::{
    filter::Table,
    limits,
    ring,
    rss, //
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
        Driver,
        Features,
        Locked,
        MacAddress, //
    },
    ethtool::{
        Coalesce,
        Pause, //
    },
    irq::Vectors,
    napi,
    rx_mode::RxMode,
    skb::SkBuffRef,
    stats::LinkStats,
    xdp::Program, //
};

use crate::{
    counters::Counters,
    ethtool::coalesce,
    filter::Filter,
    hw::Hw,
    rx,
    stats::QueueStats,
    tx,
    vector::{
        Interrupt,
        LinkWatch,
        QueuePair, //
    },
};

/// Descriptors in a ring at first.
const RX_RING: u16 = 1024;
const TX_RING: u16 = 512;

/// The MTU of a new interface, in bytes (`ether_setup()`).
const MTU: u32 = 1500;

/// What all contexts may read. The interrupt handlers go first.
pub(crate) struct Adapter<'bound> {
    _vectors: Vectors<'bound, Interrupt<'bound>>,
    pub(crate) parent: &'bound Device<Bound>,
    pub(crate) hw: Arc<Hw<'bound>>,
    pub(crate) stats: KVec<Arc<QueueStats>>,
    /// The VLANs that were asked for. Not of the control state: the core sets them without the
    /// instance lock.
    vlans: Arc<Mutex<Table>>,
    pub(crate) link: Arc<LinkWatch>,
}

/// A queue pair's NAPI.
pub(crate) enum Pair<'bound> {
    /// The pair is not in use.
    Unlisted(napi::Unlisted<QueuePair<'bound>>),
    /// Its RX queue is being restarted.
    Disabled(napi::Disabled<QueuePair<'bound>>),
    Enabled(napi::Enabled<QueuePair<'bound>>),
    /// Taken out, to be changed from one to the other.
    Taken,
}

impl<'bound> Pair<'bound> {
    /// Takes the NAPI out if it is not listed.
    fn take_unlisted(&mut self) -> Option<napi::Unlisted<QueuePair<'bound>>> {
        match core::mem::replace(self, Self::Taken) {
            Self::Unlisted(napi) => Some(napi),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Takes the NAPI out if it is disabled.
    pub(crate) fn take_disabled(&mut self) -> Option<napi::Disabled<QueuePair<'bound>>> {
        match core::mem::replace(self, Self::Taken) {
            Self::Disabled(napi) => Some(napi),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Changes what belongs to the NAPI, which is disabled for that time.
    pub(crate) fn change_state(
        &mut self,
        dev: Locked<'_, Adapter<'bound>>,
        change: impl FnOnce(&mut QueuePair<'bound>),
    ) {
        match self {
            Self::Unlisted(napi) => change(napi.state()),
            Self::Disabled(napi) => change(napi.state()),
            Self::Enabled(_) | Self::Taken => {
                if let Some(napi) = self.take_enabled() {
                    let mut napi = napi.disable(dev);

                    change(napi.state());
                    *self = Self::resume(napi, dev);
                }
            }
        }
    }

    /// Enables a NAPI and polls once: completions and packets may have come while it was disabled.
    pub(crate) fn resume(
        napi: napi::Disabled<QueuePair<'bound>>,
        dev: Locked<'_, Adapter<'bound>>,
    ) -> Self {
        let napi = napi.enable(dev);

        napi.schedule();
        Self::Enabled(napi)
    }

    /// Takes the NAPI out if it is enabled.
    pub(crate) fn take_enabled(&mut self) -> Option<napi::Enabled<QueuePair<'bound>>> {
        match core::mem::replace(self, Self::Taken) {
            Self::Enabled(napi) => Some(napi),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// What rings depend on.
#[derive(Copy, Clone)]
pub(crate) struct Settings {
    /// Descriptors of RX rings.
    pub(crate) rx_len: ring::Ring,
    /// Descriptors of TX rings.
    pub(crate) tx_len: ring::Ring,
    /// Headers are split from payload.
    pub(crate) split: bool,
    /// The longest packet, in bytes.
    pub(crate) mtu: u32,
    /// Buffers have room for what XDP programs do.
    pub(crate) xdp: bool,
}

impl Settings {
    /// How RX rings are laid out.
    pub(crate) fn layout(&self) -> rx::Layout {
        rx::Layout::new(self.rx_len, self.mtu, self.split, self.xdp)
    }

    /// Rings for `other` are the same.
    fn same_rings(&self, other: &Self) -> bool {
        self.layout() == other.layout() && self.tx_len == other.tx_len
    }
}

/// What the control path works on, under the instance lock.
pub(crate) struct Control<'bound> {
    /// All queue pairs of the device.
    pub(crate) pairs: KVec<Pair<'bound>>,
    /// How many of them are in use: the first ones, at least one.
    pub(crate) in_use: u16,
    /// How the interrupts of each queue pair are coalesced, in use or not.
    pub(crate) coalesce: KVec<Coalesce>,
    pub(crate) settings: Settings,
    pub(crate) key: rss::Key,
    pub(crate) table: rss::IndirectionTable,
    /// What is hashed while headers are not split.
    pub(crate) hash_fields: rss::HashFields,
    /// What the queues run.
    pub(crate) program: Option<Program>,
    filter: Filter,
    pub(crate) pause: Pause,
    pub(crate) counters: Counters,
    /// What the lights showed before they were used to find the port.
    pub(crate) saved_lights: u32,
}

/// Rings of some queue pairs that follow one another, allocated and not started.
pub(crate) struct Rings<'bound> {
    first: u16,
    rx: KVec<rx::Ring>,
    tx: KVec<tx::Ring<'bound>>,
}

impl<'bound> Control<'bound> {
    pub(crate) fn new(pairs: u32) -> Result<Self> {
        let in_use = u16::try_from(pairs)?;
        let mut key = [0; rss::KEY_SIZE];
        net::random_bytes(&mut key);

        Ok(Self {
            pairs: KVec::with_capacity(pairs as usize, GFP_KERNEL)?,
            in_use,
            coalesce: KVec::from_elem(coalesce::DEFAULT, pairs as usize, GFP_KERNEL)?,
            settings: Settings {
                rx_len: ring::Ring::new(RX_RING).ok_or(EINVAL)?,
                tx_len: ring::Ring::new(TX_RING).ok_or(EINVAL)?,
                split: false,
                mtu: MTU,
                xdp: false,
            },
            key: rss::Key::new(key),
            table: rss::IndirectionTable::spread(in_use),
            hash_fields: rss::HashFields::ALL,
            program: None,
            filter: Filter::NONE,
            pause: Pause {
                rx: false,
                tx: false,
            },
            counters: Counters::default(),
            saved_lights: 0,
        })
    }

    /// What is hashed. A queue can be bound while headers are split, and then must not get what
    /// cannot be split: only TCP is hashed, and all else goes to queue 0.
    pub(crate) fn effective_hash_fields(&self) -> rss::HashFields {
        if self.settings.split {
            rss::HashFields::TCP
        } else {
            self.hash_fields
        }
    }

    /// Tells the device how to spread flows.
    pub(crate) fn program_rss(&self, hw: &Hw<'_>) {
        hw.set_rss(&self.key, &self.table, self.effective_hash_fields());
    }

    /// Polls queue pairs `range` that run. What came before their interrupts were enabled raised
    /// none; and a ring that memory was short for raises none at all.
    pub(crate) fn poll_pairs(&self, range: Range<u16>) {
        let range = usize::from(range.start)..usize::from(range.end);

        for pair in self.pairs.get(range).unwrap_or_default() {
            if let Pair::Enabled(napi) = pair {
                napi.schedule();
            }
        }
    }

    pub(crate) fn add_pair(&mut self, napi: napi::Unlisted<QueuePair<'bound>>) -> Result {
        self.pairs.push(Pair::Unlisted(napi), GFP_KERNEL)?;
        Ok(())
    }
}

impl<'bound> Rings<'bound> {
    /// Allocates rings for queue pairs `pairs`, which run `program`; nothing that runs is changed.
    pub(crate) fn new(
        dev: Locked<'_, Adapter<'bound>>,
        pairs: Range<u16>,
        settings: &Settings,
        program: Option<&Program>,
    ) -> Result<Self> {
        let parent = dev.device().driver().parent;
        let mut rings = Self {
            first: pairs.start,
            rx: KVec::with_capacity(pairs.len(), GFP_KERNEL)?,
            tx: KVec::with_capacity(pairs.len(), GFP_KERNEL)?,
        };

        for index in pairs {
            // What is bound to a queue stays bound to it, with the page size that it was given.
            let config = dev.queue_config(index.into())?;
            let ring = rx::Ring::new(dev, parent, settings.layout(), &config, index, program)?;

            rings.rx.push(ring, GFP_KERNEL)?;
            rings
                .tx
                .push(tx::Ring::new(parent, settings.tx_len)?, GFP_KERNEL)?;
        }
        Ok(rings)
    }
}

impl<'bound> Adapter<'bound> {
    /// Scatter-gather and checksums stay on: a frame with device memory can be sent in no other
    /// way, and the core would accept it and never send it.
    pub(crate) const FIXED_FEATURES: Features = Features::SG
        .with(Features::IP_CSUM)
        .with(Features::IPV6_CSUM)
        .with(Features::HIGHDMA);

    /// What the user may turn off.
    pub(crate) const FEATURES: Features = Features::TSO
        .with(Features::TSO6)
        .with(Features::RXCSUM)
        .with(Features::RXHASH)
        .with(Features::VLAN_INSERT)
        .with(Features::VLAN_STRIP)
        .with(Features::VLAN_FILTER);

    pub(crate) fn new(
        vectors: Vectors<'bound, Interrupt<'bound>>,
        parent: &'bound Device<Bound>,
        hw: Arc<Hw<'bound>>,
        stats: KVec<Arc<QueueStats>>,
        link: Arc<LinkWatch>,
    ) -> Result<Self> {
        Ok(Self {
            _vectors: vectors,
            parent,
            hw,
            stats,
            link,
            vlans: Arc::pin_init(new_mutex!(Table::EMPTY), GFP_KERNEL)?,
        })
    }

    /// Starts the interface on `rings`.
    pub(crate) fn start(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        rings: Rings<'bound>,
    ) -> Result {
        let adapter = dev.device().driver();
        let hw = &adapter.hw;

        hw.set_mac_address(&dev.device().mac_address());
        control.program_rss(hw);
        hw.set_max_frame(limits::frame_len(control.settings.mtu));
        hw.set_flow_control(control.pause.rx, control.pause.tx);
        hw.start();
        Self::start_filters(dev, control);

        let started = Self::start_pairs(dev, control, rings);

        if started.is_err() {
            Self::halt(dev, control);
            return started;
        }
        // What changes after this look raises an interrupt, once they are enabled.
        dev.device().set_carrier(hw.link_is_up());
        for (vector, coalesce) in (0u16..).zip(&control.coalesce) {
            hw.set_interval(vector, coalesce.rx_usecs);
        }
        // CAST: There are at most 16 queue pairs.
        hw.enable_interrupts(control.pairs.len() as u32);
        control.poll_pairs(0..control.in_use);
        Ok(())
    }

    /// Tells the device, which may have been reset, which frames to receive.
    fn start_filters(dev: Locked<'_, Self>, control: &Control<'bound>) {
        let features = dev.device().features();
        let adapter = dev.device().driver();

        adapter.hw.set_vlan_tags(features);
        adapter.hw.set_vlans(&adapter.vlans.lock());
        adapter.hw.set_filter(&control.filter, features);
    }

    /// Starts the queue pairs that `rings` are for. On an error some may be running.
    pub(crate) fn start_pairs(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        rings: Rings<'bound>,
    ) -> Result {
        let adapter = dev.device().driver();
        let hw = &adapter.hw;
        let first = rings.first;
        let rings = rings.rx.into_iter().zip(rings.tx);
        let pairs = control.pairs.iter_mut().zip(&adapter.stats);
        let pairs = pairs.skip(usize::from(first)).zip(rings);

        for (index, ((pair, stats), (rx_ring, tx_ring))) in (first..).zip(pairs) {
            let mut napi = pair.take_unlisted().ok_or(EBUSY)?.list(dev);
            let queue = dev.device().tx_queue(u32::from(index));

            let started = tx_ring
                .start(adapter.parent, hw, stats, index)
                .and_then(|tx| {
                    rx::Running::start(rx_ring, hw.clone(), stats.clone(), &napi)
                        .map(|rx| (tx, rx))
                        .map_err(|(error, _)| error)
                });
            let ((transmitter, completion), rx) = match started {
                Ok(started) => started,
                Err(error) => {
                    *pair = Pair::Disabled(napi);
                    return Err(error);
                }
            };

            napi.state().rx = Some(rx);
            napi.state().tx = Some(completion);
            queue.reset();
            dev.replace_tx(u32::from(index), Some(transmitter));
            napi.link_queue(dev, u32::from(index), true);
            *pair = Pair::Enabled(napi.enable(dev));
            // After a change of rings frames may be waiting: wake, do not only start.
            queue.wake();
        }
        Ok(())
    }

    /// Changes what rings depend on, on new rings if the interface is up and needs them.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and all is as before. Others come from a device that did not start again: the
    /// interface has to be taken down and up.
    pub(crate) fn reconfigure(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        settings: Settings,
    ) -> Result {
        // New rings are for the program that there is now.
        let settings = Settings {
            xdp: control.program.is_some(),
            ..settings
        };

        if !dev.is_running() {
            control.settings = settings;
            return Ok(());
        }
        if settings.same_rings(&control.settings) {
            control.settings = settings;
            dev.device()
                .driver()
                .hw
                .set_max_frame(limits::frame_len(settings.mtu));
            return Ok(());
        }

        let rings = Rings::new(dev, 0..control.in_use, &settings, control.program.as_ref())?;

        Self::halt(dev, control);
        let old = core::mem::replace(&mut control.settings, settings);
        Self::start(dev, control, rings).inspect_err(|_| {
            control.settings = old;
            dev.device().set_carrier(false);
        })
    }

    /// Resets the device and starts the interface again, on new rings. What is bound stays bound.
    ///
    /// # Errors
    ///
    /// As for [`Self::reconfigure`].
    fn restart(dev: Locked<'_, Self>, control: &mut Control<'bound>) -> Result {
        let rings = Rings::new(
            dev,
            0..control.in_use,
            &control.settings,
            control.program.as_ref(),
        )?;

        Self::halt(dev, control);
        dev.device()
            .driver()
            .hw
            .reset()
            .and_then(|()| Self::start(dev, control, rings))
            .inspect_err(|_| dev.device().set_carrier(false))
    }

    /// Stops the interface and frees its rings.
    pub(crate) fn halt(dev: Locked<'_, Self>, control: &mut Control<'bound>) {
        let hw = &dev.device().driver().hw;

        hw.stop_receiving();
        Self::halt_pairs(dev, control, 0..control.in_use);
        hw.stop_sending();
        hw.disable_interrupts();
    }

    /// Stops queue pairs `range` and frees their rings.
    pub(crate) fn halt_pairs(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        range: Range<u16>,
    ) {
        for index in range {
            let Some(pair) = control.pairs.get_mut(usize::from(index)) else {
                return;
            };
            let index = u32::from(index);
            // Dropped when the completion side is, below.
            let transmitter = dev.replace_tx(index, None);

            let napi = pair.take_enabled().map(|napi| napi.disable(dev));
            let Some(mut napi) = napi.or_else(|| pair.take_disabled()) else {
                continue;
            };
            // After the last completion, which would wake it.
            dev.device().tx_queue(index).stop();
            napi.link_queue(dev, index, false);

            let completion = napi.state().tx.take();
            drop(transmitter);
            drop(completion);
            if let Some(running) = napi.state().rx.take() {
                // A queue that does not stop is disabled once more before its memory goes.
                drop(running.stop(&napi));
            }
            *pair = Pair::Unlisted(napi.unlist(dev));
        }
    }
}

impl<'bound> Driver for Adapter<'bound> {
    type Control = Control<'bound>;
    type Tx = tx::Transmitter<'bound>;

    fn open(dev: Locked<'_, Self>, control: &mut Control<'bound>) -> Result {
        control.settings.xdp = control.program.is_some();
        let rings = Rings::new(
            dev,
            0..control.in_use,
            &control.settings,
            control.program.as_ref(),
        )?;

        Self::start(dev, control, rings)
    }

    fn stop(dev: Locked<'_, Self>, control: &mut Control<'bound>) {
        Self::halt(dev, control);
        dev.device().set_carrier(false);
    }

    fn set_rx_mode(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        mode: &RxMode<'_>,
    ) -> Result {
        control.filter.set(mode);
        dev.device()
            .driver()
            .hw
            .set_filter(&control.filter, dev.device().features());
        Ok(())
    }

    fn set_vlan(&self, id: u16, receive: bool) -> Result {
        let mut vlans = self.vlans.lock();

        vlans.set(id, receive);
        self.hw.set_vlans(&vlans);
        Ok(())
    }

    fn fix_features(features: Features) -> Features {
        // One bit of the device is for both.
        if features.contains(Features::VLAN_STRIP) {
            features.with(Features::VLAN_INSERT)
        } else {
            features.without(Features::VLAN_INSERT)
        }
    }

    fn set_features(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        features: Features,
    ) -> Result {
        let hw = &dev.device().driver().hw;

        // The packet path looks at the others itself.
        hw.set_vlan_tags(features);
        hw.set_filter(&control.filter, features);
        Ok(())
    }

    fn set_mac_address(dev: Locked<'_, Self>, _control: &mut Control<'bound>, addr: &MacAddress) {
        dev.device().driver().hw.set_mac_address(addr);
    }

    fn change_mtu(dev: Locked<'_, Self>, control: &mut Control<'bound>, mtu: u32) -> Result {
        let settings = Settings {
            mtu,
            ..control.settings
        };

        Self::reconfigure(dev, control, settings)
    }

    fn tx_timeout(dev: Locked<'_, Self>, control: &mut Control<'bound>) {
        if let Err(error) = Self::restart(dev, control) {
            dev_err!(
                dev.device().driver().parent,
                "not restarted after a transmit timeout: {error:?}\n"
            );
        }
    }

    fn features_check(skb: &SkBuffRef<'_>, features: Features) -> Features {
        tx::supported(skb, features)
    }

    fn link_stats(&self) -> LinkStats {
        let mut sum = LinkStats::default();

        for (index, stats) in (0u32..).zip(self.stats.iter()) {
            sum.rx_packets += stats.rx_packets.get();
            sum.rx_bytes += stats.rx_bytes.get();
            sum.rx_dropped += stats.rx_dropped();
            sum.rx_missed_errors += self.rx_missed(index, stats);
            sum.rx_errors += stats.rx_errors.get();
            sum.tx_packets += stats.tx_packets.get();
            sum.tx_bytes += stats.tx_bytes.get();
            sum.tx_dropped += stats.tx_dropped.get();
        }
        sum
    }
}
