// SPDX-License-Identifier: GPL-2.0

//! PCI device table, and probe.

use dma_buf::{
    node,
    peer::PeerMemory, //
};
use kernel::{
    device::Core,
    pci,
    prelude::*, //
};

use crate::memory::Memory;

/// QEMU's ivshmem-plain and ivshmem-doorbell (docs/specs/ivshmem-spec.rst).
const DEVICE_IVSHMEM: u32 = 0x1110;

/// The BAR of the shared memory.
const MEMORY_BAR: u32 = 2;

/// The numbers of `/dev/ivshmem_mem0`, `1` …
static NUMBERS: node::Numbers = node::Numbers::new();

/// The driver.
pub(crate) struct IvshmemMem;

kernel::pci_device_table!(
    PCI_TABLE,
    <IvshmemMem as pci::Driver>::IdInfo,
    [(
        pci::DeviceId::from_id(pci::Vendor::REDHAT_QUMRANET, DEVICE_IVSHMEM),
        ()
    )]
);

impl pci::Driver for IvshmemMem {
    type IdInfo = ();
    /// Everything that is bound to the device is in its devres.
    type Data<'bound> = ();
    const ID_TABLE: pci::IdTable<Self::IdInfo> = &PCI_TABLE;

    fn probe<'bound>(
        pdev: &'bound pci::Device<Core<'_>>,
        _info: Option<&'bound Self::IdInfo>,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound {
        probe(pdev)
    }
}

fn probe(pdev: &pci::Device<Core<'_>>) -> Result {
    pdev.enable_device_mem()?;

    // SAFETY: Behind this BAR of the devices in `PCI_TABLE` there is RAM of the host's.
    let bar = unsafe { PeerMemory::new(pdev, MEMORY_BAR, c"ivshmem_mem")? };
    dev_info!(
        pdev,
        "{:#x} bytes of memory at {:#x}\n",
        bar.size(),
        bar.start()
    );

    node::register(pdev.as_ref(), c"ivshmem_mem", &NUMBERS, Memory::new(bar)?)
}
