// SPDX-License-Identifier: GPL-2.0

//! The interface goes up and down, and up again on other rings.

use core::ops::Range;

use i82576::limits;
use kernel::prelude::*;
use net::device::Locked;

use super::{
    Adapter,
    Control,
    Pair,
    Settings, //
};
use crate::{
    rx,
    tx, //
};

/// Rings of some queue pairs that follow one another, allocated and not started.
pub(crate) struct Rings<'bound> {
    first: u16,
    rx: KVec<rx::Memory>,
    tx: KVec<tx::Ring<'bound>>,
}

impl<'bound> Rings<'bound> {
    /// Allocates rings for queue pairs `pairs` as `settings` says; nothing that runs is changed.
    pub(crate) fn new(
        dev: Locked<'_, Adapter<'bound>>,
        control: &Control<'bound>,
        pairs: Range<u16>,
        settings: &Settings,
    ) -> Result<Self> {
        let program = control.program.as_ref();
        let parent = dev.device().driver().parent;
        let mut rings = Self {
            first: pairs.start,
            rx: KVec::with_capacity(pairs.len(), GFP_KERNEL)?,
            tx: KVec::with_capacity(pairs.len(), GFP_KERNEL)?,
        };

        for index in pairs {
            // What is bound to a queue stays bound to it, with the page size that it was given.
            let config = dev.queue_config(index.into())?;
            let xsk = control.xsk.has(index);
            let layout = settings.layout();
            let ring = rx::Memory::new(dev, parent, layout, &config, index, xsk, program)?;

            rings.rx.push(ring, GFP_KERNEL)?;
            rings
                .tx
                .push(tx::Ring::new(parent, settings.tx_len)?, GFP_KERNEL)?;
        }
        Ok(rings)
    }

    /// Allocates rings for all queue pairs in use, as [`Self::new`] does.
    pub(super) fn for_all(
        dev: Locked<'_, Adapter<'bound>>,
        control: &Control<'bound>,
        settings: &Settings,
    ) -> Result<Self> {
        Self::new(dev, control, 0..control.in_use, settings)
    }
}

impl<'bound> Adapter<'bound> {
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
        if let Some(offer) = control.offer {
            hw.keep_advertising(offer)?;
        }
        if let Some(clock) = &adapter.clock {
            clock.start(&control.stamping);
        }
        hw.start();
        Self::start_filters(dev, control);
        for (vector, coalesce) in (0u16..).zip(&control.coalesce) {
            hw.set_interval(vector, coalesce.rx_usecs);
        }

        let started = Self::start_pairs(dev, control, rings);

        if started.is_err() {
            Self::halt(dev, control);
            return started;
        }
        // What changes after this look raises an interrupt, once they are enabled.
        dev.device().set_carrier(hw.link_is_up());
        // CAST: There are at most 16 queue pairs.
        hw.enable_interrupts(control.pairs.len() as u32);
        control.poll_pairs(0..control.in_use);
        Ok(())
    }

    /// Tells the device, which may have been reset, which frames to receive, and which
    /// of them go to a queue of their own.
    fn start_filters(dev: Locked<'_, Self>, control: &Control<'bound>) {
        let features = dev.device().features();
        let adapter = dev.device().driver();

        adapter.hw.set_vlan_tags(features);
        adapter.hw.set_vlans(&adapter.vlans.lock());
        adapter.hw.set_filter(&control.filter, features);
        if let Some(table) = &control.five_tuples {
            adapter.hw.set_five_tuples(table);
        }
    }

    /// Starts the queue pairs that `rings` are for. On an error some may be running.
    pub(crate) fn start_pairs(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        rings: Rings<'bound>,
    ) -> Result {
        let adapter = dev.device().driver();
        let first = rings.first;
        let rings = rings.rx.into_iter().zip(rings.tx);
        let pairs = control.pairs.iter_mut().zip(&adapter.stats);
        let pairs = pairs.skip(usize::from(first)).zip(rings);

        for (index, ((pair, stats), (rx_ring, tx_ring))) in (first..).zip(pairs) {
            let mut napi = pair.take_unlisted().ok_or(EBUSY)?.list(dev);
            let queue = dev.device().tx_queue(u32::from(index));

            let started = tx_ring.start(adapter, stats, index).and_then(|tx| {
                rx::Queue::start(rx_ring, adapter, stats.clone(), &napi)
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

            let state = napi.state();
            state.rx = Some(rx);
            state.tx = Some(completion);
            if let Some(dim) = &mut state.dim {
                dim.set_again();
            }
            queue.reset();
            dev.replace_tx(u32::from(index), Some(transmitter));
            *pair = Pair::Enabled(napi.enable(dev));
            // After a change of rings frames may be waiting: wake, do not only start.
            queue.wake();
            dev.restart_watchdog();
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

        let rings = Rings::for_all(dev, control, &settings)?;

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
    pub(super) fn restart(dev: Locked<'_, Self>, control: &mut Control<'bound>) -> Result {
        let rings = Rings::for_all(dev, control, &control.settings)?;

        Self::halt(dev, control);
        dev.device()
            .driver()
            .hw
            .reset()
            .and_then(|()| Self::start(dev, control, rings))
            .inspect_err(|_| dev.device().set_carrier(false))
    }

    /// Runs `test` while no queue runs, and starts the interface again, on new rings, if it was up.
    /// What is bound stays bound.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and nothing was done; others as for [`Self::reconfigure`].
    pub(crate) fn offline<R>(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        test: impl FnOnce(&Self, &Control<'bound>) -> R,
    ) -> Result<R> {
        let adapter = dev.device().driver();

        if !dev.is_running() {
            let outcome = test(adapter, control);

            // A test of interrupts may have had the link's say that it is up.
            adapter.vectors.synchronize();
            dev.device().set_carrier(false);
            return Ok(outcome);
        }
        // What it takes to go on afterwards comes first.
        let rings = Rings::for_all(dev, control, &control.settings)?;

        Self::halt(dev, control);
        let outcome = test(adapter, control);
        Self::start(dev, control, rings).inspect_err(|_| dev.device().set_carrier(false))?;
        Ok(outcome)
    }

    /// Stops the interface and frees its rings.
    pub(crate) fn halt(dev: Locked<'_, Self>, control: &mut Control<'bound>) {
        let hw = &dev.device().driver().hw;

        hw.stop_receiving();
        Self::halt_pairs(dev, control, 0..control.in_use);
        hw.stop_sending();
        hw.disable_interrupts();
        // One may be about to say that the link is up.
        dev.device().driver().vectors.synchronize();
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

            let completion = napi.state().tx.take();
            drop(transmitter);
            drop(completion);
            if let Some(clock) = &dev.device().driver().clock {
                // CAST: There are at most 16 queue pairs.
                clock.forget(index as u16);
            }
            if let Some(running) = napi.state().rx.take() {
                // A queue that does not stop is disabled once more before its memory goes.
                drop(running.stop(&napi));
            }
            if let Some(pool) = &mut napi.state().pool {
                pool.discard_all();
                pool.complete_all();
            }
            *pair = Pair::Unlisted(napi.unlist(dev));
            // Thousands of buffers were freed, while all queues before this one were stopped.
            dev.restart_watchdog();
        }
    }
}
