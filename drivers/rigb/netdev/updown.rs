// SPDX-License-Identifier: GPL-2.0

//! The interface goes up and down, and up again on other rings.

use core::ops::Range;

use i82576::limits;
use kernel::prelude::*;
use net::{
    device::Locked,
    napi::{
        Disabled,
        Napi, //
    }, //
};

use super::{
    Adapter,
    Control,
    Settings, //
};
use crate::{
    rx,
    tx, //
};

/// What becomes of frames that are on the rings of a queue pair when it is stopped.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Pending {
    /// They are sent first, if there is a link, and what was received is handed up.
    Send,
    /// They are dropped: the interface goes down, or the device hangs.
    Drop,
}

/// What a poll receives at least, unless the ring is empty then (`NAPI_POLL_WEIGHT`).
const POLL_WEIGHT: u16 = 64;

/// Rings of some queue pairs that follow one another, allocated and not started.
pub(crate) struct Rings<'bound> {
    first: u16,
    rx: KVec<rx::Memory<'bound>>,
    tx: KVec<tx::Ring<'bound>>,
}

impl<'bound> Rings<'bound> {
    /// Allocates rings for queue pairs `pairs` as `settings` says; nothing that runs is changed.
    pub(crate) fn new(
        dev: Locked<'_, Adapter<'bound>>,
        control: &Control,
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
    pub(crate) fn for_all(
        dev: Locked<'_, Adapter<'bound>>,
        control: &Control,
        settings: &Settings,
    ) -> Result<Self> {
        Self::new(dev, control, 0..control.in_use, settings)
    }
}

impl<'bound> Adapter<'bound> {
    /// Starts the interface on `rings`.
    pub(crate) fn start(
        dev: Locked<'_, Self>,
        control: &mut Control,
        rings: Rings<'bound>,
    ) -> Result {
        let adapter = dev.device().driver();
        let hw = &adapter.hw;

        hw.finish_reset()?;
        hw.set_mac_address(&dev.device().mac_address());
        control.program_rss(hw);
        hw.set_max_frame(limits::frame_len(control.settings.mtu));
        hw.set_flow_control(control.pause.rx, control.pause.tx);
        hw.keep_tx_rates();
        if let Some(modes) = control.advertised {
            hw.keep_advertising(modes)?;
        }
        if let Some(clock) = &adapter.clock {
            clock.start(&control.timestamping);
        }
        hw.start();
        Self::start_filters(dev, control);
        for (vector, coalesce) in (0u16..).zip(&control.coalesce) {
            hw.set_interval(vector, coalesce.rx_usecs);
        }

        let started = Self::start_pairs(dev, rings);

        if started.is_err() {
            Self::halt(dev, control, Pending::Drop);
            return started;
        }
        // What changes after this look raises an interrupt, once they are enabled.
        dev.device().set_carrier(hw.link_is_up());
        hw.enable_interrupts(control.pairs.into());
        adapter.poll_pairs(0..control.in_use);
        Ok(())
    }

    /// Tells the device, which may have been reset, which frames to receive, and which
    /// of them go to a queue of their own.
    fn start_filters(dev: Locked<'_, Self>, control: &Control) {
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
    pub(crate) fn start_pairs(dev: Locked<'_, Self>, rings: Rings<'bound>) -> Result {
        let adapter = dev.device().driver();
        let first = rings.first;
        let rings = rings.rx.into_iter().zip(rings.tx);
        let stats = adapter.stats.iter().skip(usize::from(first));

        for (index, (stats, (rx_ring, tx_ring))) in (first..).zip(stats.zip(rings)) {
            let mut napi = match dev.napi(index.into())? {
                Napi::Unlisted(napi) => napi.list(),
                Napi::Disabled(napi) => napi,
                Napi::Enabled(_) => return Err(EBUSY),
            };

            let completion = tx_ring.start(dev, stats, index)?;
            let rx = rx::Queue::start(rx_ring, adapter, stats.clone(), &napi)
                .map_err(|(error, _)| error)
                .inspect_err(|_| drop(dev.stop_tx(index.into())))?;

            let state = napi.state();
            state.rx = Some(rx);
            state.tx = Some(completion);
            napi.enable();
            // After a change of rings frames may be waiting: wake, do not only start.
            dev.wake_tx(index.into());
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
        control: &mut Control,
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

        Self::halt(dev, control, Pending::Send);
        let old = core::mem::replace(&mut control.settings, settings);
        Self::start(dev, control, rings).inspect_err(|_| {
            control.settings = old;
            Self::give_up(dev, control);
        })
    }

    /// Resets the device and starts the interface again, on new rings. What is bound stays bound.
    ///
    /// # Errors
    ///
    /// As for [`Self::reconfigure`].
    pub(super) fn restart(dev: Locked<'_, Self>, control: &mut Control) -> Result {
        let rings = Rings::for_all(dev, control, &control.settings)?;

        Self::halt(dev, control, Pending::Drop);
        dev.device()
            .driver()
            .hw
            .reset()
            .and_then(|()| Self::start(dev, control, rings))
            .inspect_err(|_| Self::give_up(dev, control))
    }

    /// Runs `test` while no queue runs, and starts the interface again, on new rings, if it was up.
    /// What is bound stays bound.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and nothing was done; others as for [`Self::reconfigure`].
    pub(crate) fn offline<R>(
        dev: Locked<'_, Self>,
        control: &mut Control,
        test: impl FnOnce(&Self, &Control) -> R,
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

        Self::halt(dev, control, Pending::Send);
        let outcome = test(adapter, control);
        Self::start(dev, control, rings).inspect_err(|_| Self::give_up(dev, control))?;
        Ok(outcome)
    }

    /// Leaves an interface that is halted and stays so for a while: until it is taken down and up, if its
    /// device did not start again.
    pub(crate) fn give_up(dev: Locked<'_, Self>, control: &Control) {
        dev.device().set_carrier(false);
        Self::unlist_pairs(dev, 0..control.in_use);
    }

    /// Stops the interface and frees its rings.
    pub(crate) fn halt(dev: Locked<'_, Self>, control: &Control, pending: Pending) {
        let hw = &dev.device().driver().hw;

        hw.stop_receiving();
        Self::halt_pairs(dev, 0..control.in_use, pending);
        hw.stop_sending();
        hw.disable_interrupts();
        // One may be about to say that the link is up.
        dev.device().driver().vectors.synchronize();
    }

    /// Stops queue pairs `range` and frees their rings. What the core wants to send waits.
    pub(crate) fn halt_pairs(dev: Locked<'_, Self>, range: Range<u16>, pending: Pending) {
        let send = pending == Pending::Send && dev.device().has_carrier();

        for index in range {
            // Dropped when the completion side is, below.
            let mut transmitter = dev.stop_tx(index.into());
            if let (Some(transmitter), true) = (&mut transmitter, send) {
                transmitter.drain();
            }
            let Some(mut napi) = dev.napi(index.into()).ok().and_then(Napi::quiesce) else {
                continue;
            };

            if pending == Pending::Send {
                napi = receive_pending(napi);
            }

            let completion = napi.state().tx.take();
            drop(transmitter);
            drop(completion);
            if let Some(clock) = &dev.device().driver().clock {
                clock.forget(index);
            }
            let rx = napi.state().rx.take();
            let stopped = rx.is_none_or(|rx| rx.halt(&napi).is_ok());
            if let (Some(pool), true) = (napi.pool(index.into()), stopped) {
                pool.discard_all();
                pool.complete_all();
            }
            // Thousands of buffers were freed, while all queues before this one were stopped.
            dev.restart_watchdog();
        }
        if dev.device().driver().hw.was_reset() {
            // The other queues do not run any more, either.
            dev.device().schedule_tx_timeout();
        }
    }

    /// Has the core forget the NAPIs of queue pairs `range`, which are halted. It waits for a NAPI that is
    /// listed and disabled, with the instance lock held, when a user changes how it is polled.
    pub(crate) fn unlist_pairs(dev: Locked<'_, Self>, range: Range<u16>) {
        for index in range {
            if let Some(napi) = dev.napi(index.into()).ok().and_then(Napi::quiesce) {
                napi.unlist();
            }
        }
    }

    /// Has the core forget queue pairs `range`, which are halted and not in use any more.
    pub(crate) fn retire_pairs(dev: Locked<'_, Self>, range: Range<u16>) {
        Self::unlist_pairs(dev, range.clone());
        for index in range {
            dev.retire_tx(index.into());
        }
    }
}

/// Hands up what the device has received. If it is still receiving, this stops after a
/// ring's length.
fn receive_pending<'a, 'bound>(
    mut napi: Disabled<'a, Adapter<'bound>>,
) -> Disabled<'a, Adapter<'bound>> {
    for _ in 0..limits::RING_MAX / POLL_WEIGHT {
        let rx = &napi.state().rx;
        if !rx.as_ref().is_some_and(rx::Queue::is_pending) {
            break;
        }

        let enabled = napi.enable();
        enabled.schedule();
        // Waits for the poll.
        napi = enabled.disable();
    }
    napi
}
