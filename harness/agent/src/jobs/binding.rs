// SPDX-License-Identifier: MIT OR Apache-2.0

//! Holds a dma-buf bound to receive queues, and nothing else.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use anyhow::{Context, Result};
use devmem::{
    heap,
    mapped::Mapped,
    netdev::{RxBinding, bind_rx_with_page_size},
    pagemap,
    udmabuf::Udmabuf,
};
use protocol::{
    Binding, Command, Event, JobId, Ns,
    job::{BindingReport, PhysicalRange},
};

use super::{Control, Ready, not_understood};
use crate::{
    control::{lock, send_event},
    netns, rtnetlink,
};

/// A dma-buf and what binds it to the queues.
pub(super) struct Bound {
    pub(super) dmabuf: Mapped,
    pub(super) binding: RxBinding,
}

/// Makes a dma-buf of `bytes` and binds it to `queues`, which receive into buffers of
/// `rx_page_size`. Reports where its pages are, if they can be found.
pub(super) fn bind(
    job: JobId,
    ns: Ns,
    interface: &str,
    queues: &[u32],
    bytes: u64,
    rx_page_size: Option<u32>,
) -> Result<Bound> {
    let dmabuf = match rx_page_size {
        Some(_) => in_large_pages(bytes)?,
        None => dmabuf(bytes)?,
    };
    let binding = netns::within(ns, || {
        Ok(bind_rx_with_page_size(
            rtnetlink::index_of(interface)?,
            dmabuf.dmabuf(),
            queues,
            rx_page_size,
        )?)
    })?;
    if rx_page_size.is_none() {
        report_pages(job, &dmabuf)?;
    }
    Ok(Bound { dmabuf, binding })
}

/// Makes a dma-buf.
pub(super) fn dmabuf(bytes: u64) -> Result<Mapped> {
    Ok(Udmabuf::create(length(bytes)?)?.into())
}

/// Makes a dma-buf of pages that hold large receive buffers. The kernel does not tell where they are:
/// a heap's memory is mapped by frame number, and `/proc/self/pagemap` leaves such mappings out.
pub(super) fn in_large_pages(bytes: u64) -> Result<Mapped> {
    Ok(heap::allocate("system", length(bytes)?)?.map()?)
}

pub(super) fn length(bytes: u64) -> Result<usize> {
    bytes
        .try_into()
        .context("the dma-buf is larger than the address space")
}

/// Tells the host where a dma-buf lies.
pub(super) fn report_pages(job: JobId, dmabuf: &Mapped) -> Result<()> {
    report_ranges(job, dmabuf.physical_pages()?);
    Ok(())
}

/// Tells the host where memory to receive into lies.
pub(super) fn report_ranges(job: JobId, ranges: Vec<pagemap::PhysicalRange>) {
    let ranges = ranges
        .into_iter()
        .map(|range| PhysicalRange {
            offset: range.offset,
            address: range.address,
            len: range.len,
        })
        .collect();
    send_event(job, Event::DmaBuf { ranges });
}

/// Holds the binding until it shall go.
struct Holder {
    // The dma-buf stays until the job is joined, as with the other devmem jobs.
    _dmabuf: Mapped,
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
    let bound = bind(
        id,
        spec.ns,
        &spec.interface,
        &spec.queues,
        spec.dmabuf_bytes,
        spec.rx_page_size,
    )?;
    let report = BindingReport {
        dmabuf: bound.binding.id(),
    };
    let holder = Arc::new(Holder {
        _dmabuf: bound.dmabuf,
        binding: Mutex::new(Some(bound.binding)),
        closed: Condvar::new(),
    });
    let control = Arc::clone(&holder);
    Ok(Ready::new::<Binding>(control, move || {
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
