// SPDX-License-Identifier: GPL-2.0

//! The interface: its state, and how it goes up and down.

use i82576::{
    ring,
    rss, //
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    prelude::*,
    sync::Arc, //
};
use net::{
    device::{
        Driver,
        Features,
        Locked,
        MacAddress,
        RxMode, //
    },
    irq::Vectors,
    napi,
    skb::SkBuffRef,
    stats::LinkStats, //
};

use crate::{
    hw::Hw,
    rx,
    stats::QueueStats,
    tx,
    vector::{
        Interrupt,
        QueuePair, //
    },
};

/// Descriptors in a ring at first.
const RX_RING: u16 = 1024;
const TX_RING: u16 = 512;

/// What all contexts may read. The interrupt handlers go first.
pub(crate) struct Adapter<'bound> {
    _vectors: Vectors<'bound, Interrupt<'bound>>,
    pub(crate) parent: &'bound Device<Bound>,
    pub(crate) hw: Arc<Hw<'bound>>,
    pub(crate) stats: KVec<Arc<QueueStats>>,
}

/// A queue pair's NAPI.
pub(crate) enum Pair<'bound> {
    Disabled(napi::Disabled<QueuePair<'bound>>),
    Enabled(napi::Enabled<QueuePair<'bound>>),
    /// Taken out, to be changed from one to the other.
    Taken,
}

impl<'bound> Pair<'bound> {
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

/// What the control path works on, under the instance lock.
pub(crate) struct Control<'bound> {
    pub(crate) pairs: KVec<Pair<'bound>>,
    pub(crate) rx_len: ring::Ring,
    pub(crate) tx_len: ring::Ring,
    pub(crate) split: bool,
    pub(crate) key: rss::Key,
    pub(crate) table: rss::IndirectionTable,
    mode: RxMode,
}

/// All rings of the interface, allocated and not started.
pub(crate) struct Rings<'bound> {
    rx: KVec<rx::Ring>,
    tx: KVec<tx::Ring<'bound>>,
}

impl<'bound> Control<'bound> {
    pub(crate) fn new(pairs: u32) -> Result<Self> {
        let mut key = [0; rss::KEY_SIZE];
        net::random_bytes(&mut key);

        Ok(Self {
            pairs: KVec::with_capacity(pairs as usize, GFP_KERNEL)?,
            rx_len: ring::Ring::new(RX_RING).ok_or(EINVAL)?,
            tx_len: ring::Ring::new(TX_RING).ok_or(EINVAL)?,
            split: false,
            key: rss::Key::new(key),
            table: rss::IndirectionTable::spread(u16::try_from(pairs)?),
            mode: RxMode {
                promiscuous: false,
                multicast: false,
            },
        })
    }

    pub(crate) fn add_pair(&mut self, napi: napi::Disabled<QueuePair<'bound>>) -> Result {
        self.pairs.push(Pair::Disabled(napi), GFP_KERNEL)?;
        Ok(())
    }

    /// How RX rings are laid out.
    pub(crate) fn layouts(&self) -> rx::Layouts {
        rx::Layouts {
            len: self.rx_len,
            split: self.split,
        }
    }
}

impl<'bound> Rings<'bound> {
    /// Allocates rings for all `pairs` queue pairs; nothing that runs is changed.
    pub(crate) fn new(
        dev: Locked<'_, Adapter<'bound>>,
        pairs: usize,
        layouts: rx::Layouts,
        tx_len: ring::Ring,
    ) -> Result<Self> {
        let parent = dev.device().driver().parent;
        let mut rings = Self {
            rx: KVec::with_capacity(pairs, GFP_KERNEL)?,
            tx: KVec::with_capacity(pairs, GFP_KERNEL)?,
        };

        // CAST: There are at most 16 queue pairs.
        for index in 0..pairs as u16 {
            // What is bound to a queue stays bound to it, with the page size that it was given.
            let config = dev.queue_config(index.into())?;
            let ring = rx::Ring::new(dev, parent, layouts, &config, index)?;

            rings.rx.push(ring, GFP_KERNEL)?;
            rings.tx.push(tx::Ring::new(parent, tx_len)?, GFP_KERNEL)?;
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
        .with(Features::RXHASH);

    pub(crate) fn new(
        vectors: Vectors<'bound, Interrupt<'bound>>,
        parent: &'bound Device<Bound>,
        hw: Arc<Hw<'bound>>,
        stats: KVec<Arc<QueueStats>>,
    ) -> Self {
        Self {
            _vectors: vectors,
            parent,
            hw,
            stats,
        }
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
        hw.set_rss(&control.key, &control.table);
        hw.start();
        hw.set_rx_mode(control.mode);

        let rings = rings.rx.into_iter().zip(rings.tx);
        let pairs = control.pairs.iter_mut().zip(&adapter.stats).zip(rings);
        let mut result = Ok(());

        for (index, ((pair, stats), (rx_ring, tx_ring))) in (0u16..).zip(pairs) {
            let Some(mut napi) = pair.take_disabled() else {
                result = Err(EBUSY);
                break;
            };
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
                    result = Err(error);
                    break;
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

        if result.is_err() {
            Self::halt(dev, control);
            return result;
        }
        // What changes after this look raises an interrupt, once they are enabled.
        dev.device().set_carrier(hw.link_is_up());
        // CAST: There are at most 16 queue pairs.
        hw.enable_interrupts(control.pairs.len() as u32);
        // What came before that raised no interrupt; and a ring that memory was short for raises
        // none at all.
        for pair in control.pairs.iter() {
            if let Pair::Enabled(napi) = pair {
                napi.schedule();
            }
        }
        Ok(())
    }

    /// Stops the interface and frees its rings.
    pub(crate) fn halt(dev: Locked<'_, Self>, control: &mut Control<'bound>) {
        let adapter = dev.device().driver();

        adapter.hw.stop_receiving();
        for (index, pair) in (0u32..).zip(control.pairs.iter_mut()) {
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
            *pair = Pair::Disabled(napi);
        }
        adapter.hw.stop_sending();
        adapter.hw.disable_interrupts();
    }
}

impl<'bound> Driver for Adapter<'bound> {
    type Control = Control<'bound>;
    type Tx = tx::Transmitter<'bound>;

    fn open(dev: Locked<'_, Self>, control: &mut Control<'bound>) -> Result {
        let rings = Rings::new(dev, control.pairs.len(), control.layouts(), control.tx_len)?;

        Self::start(dev, control, rings)
    }

    fn stop(dev: Locked<'_, Self>, control: &mut Control<'bound>) {
        Self::halt(dev, control);
        dev.device().set_carrier(false);
    }

    fn set_rx_mode(dev: Locked<'_, Self>, control: &mut Control<'bound>, mode: RxMode) -> Result {
        control.mode = mode;
        dev.device().driver().hw.set_rx_mode(mode);
        Ok(())
    }

    fn set_mac_address(dev: Locked<'_, Self>, _control: &mut Control<'bound>, addr: &MacAddress) {
        dev.device().driver().hw.set_mac_address(addr);
    }

    fn change_mtu(_dev: Locked<'_, Self>, _control: &mut Control<'bound>, _mtu: u32) -> Result {
        // The device always takes jumbo frames, over as many buffers as they need.
        Ok(())
    }

    fn features_check(skb: &SkBuffRef<'_>, features: Features) -> Features {
        if tx::can_offload(skb) {
            features
        } else {
            features.without(
                Features::IP_CSUM
                    .with(Features::IPV6_CSUM)
                    .with(Features::TSO)
                    .with(Features::TSO6),
            )
        }
    }

    fn link_stats(&self) -> LinkStats {
        let mut sum = LinkStats::default();

        for (index, stats) in (0u32..).zip(self.stats.iter()) {
            stats.rx_missed.add_shared(self.hw.take_rx_drops(index));
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
