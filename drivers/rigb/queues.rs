// SPDX-License-Identifier: GPL-2.0

//! Single RX queues are restarted while the others run: this binds them to device memory.
//!
//! The pair's NAPI is disabled from stop to start. Its TX queue goes on to take frames in that
//! time; their completion waits for the NAPI.

use i82576::limits;
use kernel::prelude::*;
use net::{
    device::{
        Locked,
        NetDevice, //
    },
    ethtool::ExtAck,
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
        Control,
        Pair, //
    },
    rx, //
};

impl<'bound> QueueManagement for Adapter<'bound> {
    type Memory = rx::Memory;

    const PARAMETERS: Parameters = Parameters::RX_PAGE_SIZE;

    const DEFAULT: Config = Config {
        rx_page_size: PageSize::PAGE,
    };

    fn queue_validate(_dev: &NetDevice<Self>, config: &Config, extack: &ExtAck<'_>) -> Result {
        if config.rx_page_size.bytes() > limits::PAYLOAD_BUFFER_MAX {
            extack.set(c"rx_page_size is more than 64 KiB");
            return Err(ERANGE);
        }
        Ok(())
    }

    fn queue_alloc(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        config: &Config,
        index: u32,
    ) -> Result<rx::Memory> {
        if dev.has_unreadable_provider(index) && (index == 0 || !control.settings.split) {
            // What is not TCP goes to queue 0, which cannot be split.
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
        control: &mut Control<'bound>,
        index: u32,
        memory: rx::Memory,
    ) -> core::result::Result<(), (Error, rx::Memory)> {
        let adapter = dev.device().driver();
        let at = index as usize;
        let (Some(pair), Some(stats)) = (control.pairs.get_mut(at), adapter.stats.get(at)) else {
            return Err((EINVAL, memory));
        };

        let Some(mut napi) = pair.take_disabled() else {
            return Err((EBUSY, memory));
        };
        match rx::Queue::start(memory, adapter, stats.clone(), &napi) {
            Ok(running) => napi.state().rx = Some(running),
            Err(failed) => {
                *pair = Pair::Disabled(napi);
                return Err(failed);
            }
        }
        *pair = Pair::resume(napi, dev);
        Ok(())
    }

    fn queue_stop(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        index: u32,
    ) -> Result<rx::Memory> {
        let pair = control.pairs.get_mut(index as usize).ok_or(EINVAL)?;
        let mut napi = pair.take_enabled().ok_or(ENETDOWN)?.disable(dev);
        let Some(running) = napi.state().rx.take() else {
            *pair = Pair::resume(napi, dev);
            return Err(ENETDOWN);
        };

        match running.stop(&napi) {
            Ok(memory) => {
                if let Some(pool) = &mut napi.state().pool {
                    pool.discard_all();
                }
                *pair = Pair::Disabled(napi);
                Ok(memory)
            }
            Err((error, running)) => {
                napi.state().rx = Some(running);
                *pair = Pair::resume(napi, dev);
                Err(error)
            }
        }
    }
}
