// SPDX-License-Identifier: GPL-2.0

//! PCI: which devices, and what probe does.

use i82576::limits;
use kernel::{
    device::Core,
    dma::{
        Device as _,
        DmaMask, //
    },
    module::this_module,
    pci,
    prelude::*,
    sync::Arc, //
};
use net::{
    napi, ptp,
    registration::{
        self,
        Registration,
        Unregistered, //
    },
};
use pci_driver::irq::Vectors;

use crate::{
    clock::Clock,
    doorbells::Offer,
    hw::Hw,
    netdev::{
        Adapter,
        Control, //
    },
    stats::QueueStats,
    vector::{
        Interrupt,
        LinkState,
        QueuePair,
        Vector, //
    },
};

/// The driver.
pub(crate) struct Rigb;

/// A bound device: dropping it takes everything down in the order of the fields.
pub(crate) struct Bound<'bound> {
    _doorbells: Offer<'bound>,
    pub(crate) netdev: Registration<'bound, Adapter<'bound>>,
}

kernel::pci_device_table!(
    PCI_TABLE,
    <Rigb as pci::Driver>::IdInfo,
    [(
        pci::DeviceId::from_id(pci::Vendor::INTEL, i82576::pci::DEVICE_COPPER as u32),
        ()
    )]
);

impl pci::Driver for Rigb {
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

/// The largest DMA segment: a dma-buf's mapping is one, whatever its size.
const MAX_SEGMENT: u32 = u32::MAX;

/// The largest MTU: that of the kernel's `igb` (`MAX_STD_JUMBO_FRAME_SIZE`). The device could take more.
const MAX_MTU: u32 = 9216;

fn probe<'bound>(pdev: &'bound pci::Device<Core<'_>>) -> Result<Bound<'bound>> {
    pdev.enable_device_mem()?;
    // SAFETY: Nothing is mapped or allocated for DMA yet.
    unsafe {
        pdev.dma_set_mask_and_coherent(DmaMask::new::<64>())?;
        pdev.dma_set_max_seg_size(MAX_SEGMENT);
    }

    let hw = Hw::new(pdev)?;
    hw.reset()?;
    let five_tuples = hw.has_five_tuples();
    pdev.set_master();

    // One vector for each queue pair and one for the link.
    let max_pairs = u32::from(limits::MAX_RX_QUEUES.min(limits::MAX_VECTORS - 1));
    let mut vectors = Vectors::new(
        pdev,
        pci::IrqTypes::default().with(pci::IrqType::MsiX),
        2,
        max_pairs + 1,
    )?;
    let pairs = vectors.count() - 1;
    // Initially a pair for each CPU that there may be, and at least two, as queue 0 cannot be bound to
    // device memory. CAST: A number of processors fits.
    let in_use = (kernel::cpu::nr_cpu_ids() as u32).max(2).min(pairs);

    let mut netdev = Unregistered::new(
        pdev.as_ref(),
        registration::Config {
            rx_queues: pairs,
            tx_queues: pairs,
            rx_in_use: in_use,
            tx_in_use: in_use,
            mac_address: hw.mac_address(),
            min_mtu: 68,
            max_mtu: MAX_MTU,
            fixed_features: Adapter::FIXED_FEATURES,
            features: Adapter::FEATURES,
            optional_features: Adapter::OPTIONAL_FEATURES,
            max_tso: None,
            netmem_tx: true,
            unicast_filter: true,
            live_address_change: true,
            software_stats: false,
        },
    )?
    .with_queue_management()
    .with_queue_stats()
    .with_xdp()
    .with_xsk()
    .with_rings()
    .with_channels()
    .with_coalescing()
    .with_rss()
    .with_link_settings()
    .with_flow_control()
    .with_statistics()
    .with_standard_statistics()
    .with_registers()
    .with_self_tests()
    .with_identification()
    .with_wake_on_lan()
    .with_message_level();

    // SAFETY: The clock goes into the driver's state and its queues', which are dropped at unbind.
    let clock = unsafe {
        ptp::Registration::new(
            pdev.as_ref(),
            Clock::new(hw.clone()),
            this_module::<crate::LocalModule>(),
        )
    };
    let clock = match clock? {
        Some(clock) => Some(Arc::new(clock, GFP_KERNEL)?),
        None => None,
    };

    let control = Control::new(pairs, in_use, five_tuples)?;
    let mut stats = KVec::with_capacity(pairs as usize, GFP_KERNEL)?;
    let mut schedulers = KVec::with_capacity(pairs as usize, GFP_KERNEL)?;

    for index in 0..pairs {
        let napi = netdev.add_napi(
            napi::Config {
                rx: index..index + 1,
                tx: index..index + 1,
                irq: Some(vectors.irq(index)?),
            },
            Vector::new(hw.clone(), u16::try_from(index)?),
            QueuePair::default(),
        )?;

        // SAFETY: The vectors go into the driver's state, which is dropped at unbind.
        unsafe { vectors.handle(index, c"rigb-queue", Interrupt::Queue(napi.clone()))? };
        schedulers.push(napi, GFP_KERNEL)?;
        stats.push(Arc::new(QueueStats::new(), GFP_KERNEL)?, GFP_KERNEL)?;
    }
    let link_state = Arc::new(LinkState::new(), GFP_KERNEL)?;
    let link = Interrupt::Link {
        hw: hw.clone(),
        dev: netdev.device(),
        vector: pairs,
        state: link_state.clone(),
    };
    // SAFETY: As above.
    unsafe { vectors.handle(pairs, c"rigb-link", link)? };

    let offer = Offer::new(pdev, &hw)?;
    let adapter = Adapter::new(
        vectors,
        pdev.as_ref(),
        hw,
        clock,
        stats,
        schedulers,
        link_state,
    )?;

    // SAFETY: The registration goes into the driver's data, which is dropped at unbind.
    let netdev = unsafe {
        if five_tuples {
            netdev.with_flow_rules().register(adapter, control)
        } else {
            netdev.register(adapter, control)
        }
    }?;

    Ok(Bound {
        _doorbells: offer,
        netdev,
    })
}
