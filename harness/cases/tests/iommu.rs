// SPDX-License-Identifier: MIT OR Apache-2.0

//! An IOMMU lets devices reach what the driver has mapped, and no longer than it has: whatever else a device is to
//! access is in the log of the kernel, or of our model.

use cases::{Ability, Result, Testbed};

const MIB: u64 = 1 << 20;

#[test]
fn payload_goes_both_ways_through_an_iommu() -> Result {
    let bed = Testbed::devmem_options()
        .needs([Ability::DevmemTx])
        .iommu()
        .boot_steered("iommu")?;
    let device = bed.pci_device(bed.local)?;
    let domain = bed.read_file(format!("/sys/bus/pci/devices/{device}/iommu_group/type"))?;
    assert_eq!(domain.trim(), "DMA", "the kernel unmaps at once");
    bed.transfer_both_ways(MIB)?;
    bed.both_ways(MIB)?.finish()?;
    bed.finish()
}

#[test]
fn a_nic_whose_rings_are_replaced_under_traffic_reaches_nothing_that_was_freed() -> Result {
    let bed = Testbed::devmem_options()
        .needs([Ability::RingSizes])
        .iommu()
        .boot_steered("iommu-rings")?;
    let flows = bed.both_ways(MIB)?;
    for descriptors in [512, 128, 256] {
        bed.set_receive_ring(bed.local, descriptors)?;
    }
    flows.finish()?;
    bed.finish()
}

#[test]
fn a_nic_that_is_brought_down_under_traffic_reaches_nothing_that_was_freed() -> Result {
    let bed = Testbed::devmem_options()
        .iommu()
        .boot_steered("iommu-down")?;
    let flows = bed.both_ways(MIB)?;
    bed.down_and_up(bed.local)?;
    bed.wait_carrier(true)?;
    flows.abandon()?;
    bed.finish()
}
