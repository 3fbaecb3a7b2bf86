// SPDX-License-Identifier: MIT OR Apache-2.0

//! Holds a dma-buf bound to receive queues, and nothing else.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use anyhow::Result;
use devmem_tcp::{
    interface::Interface,
    memory::Memory,
    netdev::{RxBinding, TxBinding},
};
use protocol::{Binding, Command, JobId, Ns, devmem::BindingReport};

use super::{
    job::{Control, Ready, not_understood},
    memory::{allocate, report_place},
};
use crate::{lock::lock, netns};

/// Binds a dma-buf to receive queues, whose buffers have `rx_page_size` bytes.
pub(super) fn bind(
    ns: Ns,
    interface: &str,
    queues: &[u32],
    dmabuf: &Memory,
    rx_page_size: Option<u32>,
) -> Result<RxBinding> {
    netns::within(ns, || {
        let mut binder =
            RxBinding::to(Interface::by_name(interface)?).queues(queues.iter().copied());
        if let Some(bytes) = rx_page_size {
            binder = binder.rx_page_size(bytes);
        }
        Ok(binder.bind(dmabuf)?)
    })
}

/// Binds a dma-buf for sending.
pub(super) fn bind_for_sending(ns: Ns, interface: &str, dmabuf: &Memory) -> Result<TxBinding> {
    netns::within(ns, || {
        Ok(TxBinding::to(Interface::by_name(interface)?).bind(dmabuf)?)
    })
}

/// Holds the binding until the job is stopped.
struct Holder {
    // The dma-buf stays until the job is joined, as with the other devmem jobs.
    _dmabuf: Memory,
    binding: Mutex<Option<RxBinding>>,
    closed: Condvar,
}

impl Control for Holder {
    fn tell(&self, command: &Command) -> Result<()> {
        match command {
            Command::Stop | Command::CloseBinding => {
                drop(lock(&self.binding).take());
                self.closed.notify_all();
                Ok(())
            }
            other => Err(not_understood("Binding", other)),
        }
    }
}

pub(super) fn set_up(id: JobId, spec: &Binding) -> Result<Ready> {
    let dmabuf = allocate(spec.memory, spec.dmabuf_bytes)?;
    let binding = bind(
        spec.ns,
        &spec.interface,
        &spec.queues,
        &dmabuf,
        spec.rx_page_size,
    )?;
    report_place(id, &dmabuf)?;
    let report = BindingReport {
        dmabuf: binding.id(),
    };
    let holder = Arc::new(Holder {
        _dmabuf: dmabuf,
        binding: Mutex::new(Some(binding)),
        closed: Condvar::new(),
    });
    Ok(Ready::new::<Binding, _>(holder, move |holder| {
        let binding = lock(&holder.binding);
        // Poisoning means that the guest is going down.
        drop(
            holder
                .closed
                .wait_while(binding, |binding| binding.is_some())
                .unwrap_or_else(PoisonError::into_inner),
        );
        report
    }))
}
