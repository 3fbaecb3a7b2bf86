// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the device has received when the interface is reconfigured, and nothing has signalled it.

use cases::{Ability, CaseError, Family, Result, Testbed};
use protocol::{pci::WriteRegister, rings::TcpDataSplit};

#[test]
fn what_the_device_has_received_is_handed_up_before_a_change() -> Result {
    const DATAGRAMS: u64 = 200;
    const ATTEMPTS: u32 = 20;
    /// Masks the interrupts of vectors (82576 datasheet, 8.8.3); here, of all vectors.
    const EIMC: u32 = 0x1528;

    let bed = Testbed::options()
        .needs([Ability::LosslessChanges])
        .boot("lossless-received")?;
    let device = bed.pci_device(bed.local)?;
    let datagrams = bed.datagrams(bed.peer, bed.local, Family::V4, 1000);
    let sink = datagrams.sink(&bed)?;
    // Now the neighbour is resolved.
    let mut read = bed.datagrams_read(bed.local.ns)? + 1;
    datagrams.source(&bed, Some(1))?.join()?;
    bed.wait_until(read, || bed.datagrams_read(bed.local.ns))?;

    let changes: [(&str, &dyn Fn() -> Result); 4] = [
        ("rings", &|| bed.set_receive_ring(bed.local, 512)),
        ("MTU", &|| bed.set_mtu(bed.local, 9000)),
        ("split", &|| {
            bed.set_header_split(bed.local, TcpDataSplit::On)
        }),
        ("test", &|| bed.test_offline(bed.local)),
    ];
    for (what, change) in changes {
        let unread = |read| {
            // Mask interrupts, so that nothing signals received packets.
            bed.packets_when_quiet()?;
            bed.guest
                .call(WriteRegister::new(&device, EIMC, u32::MAX))?;
            datagrams.source(&bed, Some(DATAGRAMS))?.join()?;
            Ok::<_, CaseError>(bed.datagrams_read(bed.local.ns)? == read)
        };
        // Every two seconds the driver polls without an interrupt.
        let mut attempts = 0..ATTEMPTS;
        while !unread(read)? {
            assert_ne!(
                attempts.next(),
                None,
                "{what}: all of them were read at once"
            );
            read += DATAGRAMS;
            bed.wait_until(read, || bed.datagrams_read(bed.local.ns))?;
        }
        change()?;
        read += DATAGRAMS;
        bed.wait_until(read, || bed.datagrams_read(bed.local.ns))
            .map_err(|error| CaseError::new(format!("{what}: {error}")))?;
    }
    sink.stop()?;
    bed.finish()
}
