// SPDX-License-Identifier: GPL-2.0

//! PCI device table, and probe.

use dma_buf::node;
use engine::{
    pci as ids,
    regs, //
};
use kernel::{
    device::Core,
    dma::{
        Device as _,
        DmaMask, //
    },
    irq::{
        Handler,
        IrqReturn, //
    },
    pci,
    prelude::*,
    sync::Arc, //
};
use pci_driver::irq::Vectors;

use crate::device::{
    Device,
    Event, //
};

/// The numbers of `/dev/copy_engine0`, `1` …
static NUMBERS: node::Numbers = node::Numbers::new();

/// The driver.
pub(crate) struct CopyEngine;

/// A bound device: it is stopped before its interrupts are freed.
pub(crate) struct Bound<'bound> {
    _device: Stopped,
    _vectors: Vectors<'bound, Completed>,
}

/// Stops the device when it is dropped.
struct Stopped(Arc<Device>);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The interrupt of a queue.
struct Completed(Arc<Event>);

impl Handler for Completed {
    fn handle(&self) -> IrqReturn {
        self.0.notify();
        IrqReturn::Handled
    }
}

kernel::pci_device_table!(
    PCI_TABLE,
    <CopyEngine as pci::Driver>::IdInfo,
    [(
        pci::DeviceId::from_id(pci::Vendor::REDHAT_QUMRANET, ids::DEVICE as u32),
        ()
    )]
);

impl pci::Driver for CopyEngine {
    type IdInfo = ();
    type Data<'bound> = Bound<'bound>;
    const ID_TABLE: pci::IdTable<Self::IdInfo> = &PCI_TABLE;

    fn probe<'bound>(
        pdev: &'bound pci::Device<Core<'_>>,
        _info: Option<&'bound Self::IdInfo>,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound {
        probe(pdev)
    }
}

fn probe<'bound>(pdev: &'bound pci::Device<Core<'_>>) -> Result<Bound<'bound>> {
    pdev.enable_device_mem()?;
    // SAFETY: Nothing is mapped for DMA yet.
    unsafe {
        pdev.dma_set_mask_and_coherent(DmaMask::new::<64>())?;
        // A dma-buf's mapping is one segment, whatever its size.
        pdev.dma_set_max_seg_size(u32::MAX);
    }

    let device = Device::new(pdev)?;
    pdev.set_master();
    let types = pci::IrqTypes::default().with(pci::IrqType::MsiX);
    let mut vectors = Vectors::new(pdev, types, regs::QUEUES, regs::QUEUES)?;
    for queue in 0..regs::QUEUES {
        let handler = Completed(device.event(queue)?.clone());
        // SAFETY: The vectors go into the driver's data, which is dropped at unbind.
        unsafe { vectors.handle(queue, c"copy_engine", handler)? };
    }

    node::register(pdev.as_ref(), c"copy_engine", &NUMBERS, device.clone())?;
    Ok(Bound {
        _device: Stopped(device),
        _vectors: vectors,
    })
}
