// SPDX-License-Identifier: GPL-2.0

//! Restarts single RX queues while the others run, which binds them to device memory.
//!
//! The pair's NAPI is disabled from stop to start. Its TX queue still accepts frames in that time,
//! but their completion waits for the NAPI.

use i82576::limits;
use kernel::prelude::*;
use net::{
    device::{
        Locked,
        NetDevice, //
    },
    ethtool::ExtAck,
    napi::Napi,
    page_pool::PageSize,
    queue::{
        Config,
        Parameters,
        QueueManagement, //
    }, //
};

use crate::{
    netdev::{
        Adapter,
        Control, //
    },
    rx, //
};

impl<'bound> QueueManagement for Adapter<'bound> {
    type Memory = rx::Memory<'bound>;

    const PARAMETERS: Parameters = Parameters::RX_PAGE_SIZE;

    fn queue_default(_dev: &NetDevice<Self>) -> Config {
        Config {
            rx_page_size: PageSize::PAGE,
        }
    }

    fn queue_validate(_dev: &NetDevice<Self>, config: &Config, extack: &ExtAck<'_>) -> Result {
        if config.rx_page_size.bytes() > limits::PAYLOAD_BUFFER_MAX {
            extack.set(c"rx_page_size is more than 64 KiB");
            return Err(ERANGE);
        }
        Ok(())
    }

    fn queue_alloc(
        dev: Locked<'_, Self>,
        control: &mut Control,
        config: &Config,
        index: u32,
    ) -> Result<rx::Memory<'bound>> {
        // The core has seen to it that headers are split.
        if dev.has_unreadable_provider(index) && index == 0 {
            // Packets other than TCP, which cannot be split, go to queue 0.
            return Err(EOPNOTSUPP);
        }
        let parent = dev.device().driver().parent;
        let layout = control.settings.layout();
        let index = u16::try_from(index)?;
        let xsk = control.xsk.has(index);

        rx::Memory::new(
            dev,
            parent,
            layout,
            config,
            index,
            xsk,
            control.program.as_ref(),
        )
    }

    fn queue_start(
        dev: Locked<'_, Self>,
        _control: &mut Control,
        index: u32,
        memory: rx::Memory<'bound>,
    ) -> core::result::Result<(), (Error, rx::Memory<'bound>)> {
        let adapter = dev.device().driver();
        let Some(stats) = adapter.stats.get(index as usize) else {
            return Err((EINVAL, memory));
        };
        let mut napi = match dev.napi(index).and_then(Napi::disabled) {
            Ok(napi) => napi,
            Err(error) => return Err((error, memory)),
        };

        match rx::Queue::start(memory, adapter, stats.clone(), &napi) {
            Ok(rx) => napi.state().rx = Some(rx),
            // The core would try once more with the memory of before, and warn. Only a reset helps, which
            // makes memory as the queue is configured then.
            Err((error, _)) => {
                dev_err!(
                    adapter.parent,
                    "RX queue {index} does not start: {error:?}\n"
                );
                dev.device().schedule_tx_timeout();
            }
        }
        // Completions and packets may have come while it was disabled.
        napi.enable().schedule();
        Ok(())
    }

    fn queue_stop(
        dev: Locked<'_, Self>,
        _control: &mut Control,
        index: u32,
    ) -> Result<rx::Memory<'bound>> {
        let mut napi = dev.napi(index)?.enabled()?.disable();
        let Some(running) = napi.state().rx.take() else {
            napi.enable().schedule();
            return Err(ENETDOWN);
        };

        match running.stop(&napi) {
            Ok(memory) => {
                if let Some(pool) = napi.pool(index) {
                    pool.discard_all();
                }
                Ok(memory)
            }
            // The core warns of any other error when device memory is unbound. After the reset the queue has
            // memory as it is configured then.
            Err((error, running)) => {
                dev_err!(
                    dev.device().driver().parent,
                    "RX queue {index} does not stop: {error:?}\n"
                );
                napi.state().rx = Some(running);
                napi.enable().schedule();
                dev.device().schedule_tx_timeout();
                Err(ENETDOWN)
            }
        }
    }
}
