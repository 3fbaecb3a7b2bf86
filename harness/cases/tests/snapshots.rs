// SPDX-License-Identifier: MIT OR Apache-2.0

//! The snapshots that the other cases resume from.

use cases::{Result, Testbed};
use vm::Topology;

#[test]
fn guests_of_every_kind_go_on_from_where_one_had_booted() -> Result {
    let usual = Testbed::options();
    for (kind, options) in [
        ("usual", usual.clone()),
        ("processors", usual.clone().cpus(4)),
        ("wires", usual.clone().two_wires()),
        ("hot-plug", usual.clone().hot_plug()),
        ("bounce", usual.clone().bounce_buffers()),
        ("accelerator", usual.clone().accelerator(Topology::Switch)),
        ("iommu", usual.iommu().accelerator(Topology::RootComplex)),
    ] {
        // Another case may be taking the snapshot; a guest started meanwhile boots.
        let mut times = 0..3;
        loop {
            assert!(times.next().is_some(), "{kind}: all of them booted");
            let bed = options.clone().boot(&format!("snapshot-{kind}"))?;
            let (resumed, kvm) = (bed.guest.resumed(), bed.guest.hypervisor() == "kvm");
            let unkept = bed.guest.unkept().map(ToString::to_string);
            assert_eq!(unkept, None, "{kind}: there is no snapshot of it");
            bed.finish()?;
            if resumed || kvm {
                break;
            }
        }
    }
    Ok(())
}
