// SPDX-License-Identifier: MIT OR Apache-2.0

//! Accelerator memory as it passes from one user to the next, and as its driver is unbound.

use std::{
    thread,
    time::{Duration, Instant},
};

use cases::{ACCELERATOR, CaseError, Family, Result, Testbed, assert_refused, place};
use libc::ENOENT;
use protocol::{Release, kernel::FreeDeferred};
use vm::Topology;

const MIB: u64 = 1 << 20;
const DRIVER: &str = "ivshmem_mem";

/// How long the kernel may take to log something.
const PATIENCE: Duration = Duration::from_secs(60);

/// The accelerator's address on the PCI bus.
fn address(bed: &Testbed) -> Result<String> {
    let uevent = bed.read_file("/sys/class/misc/ivshmem_mem0/device/uevent")?;
    uevent
        .lines()
        .find_map(|line| line.strip_prefix("PCI_SLOT_NAME="))
        .map(str::to_owned)
        .ok_or_else(|| CaseError::new(format!("no PCI_SLOT_NAME in {uevent:?}")))
}

#[test]
fn an_accelerator_stays_with_its_driver_until_a_nic_no_longer_uses_its_memory() -> Result {
    let bed = Testbed::accelerator(Topology::Switch, "accelerator-unbind")?;
    let address = address(&bed)?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4).in_accelerator();
    let mut sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    sink.wait_bytes(4 * MIB)?;

    thread::scope(|scope| {
        let unbind = scope.spawn(|| bed.tell_driver(DRIVER, "unbind", &address));
        let deadline = Instant::now() + PATIENCE;
        while !bed.guest.console_text().contains("unbinding waits for") {
            if unbind.is_finished() || Instant::now() > deadline {
                return Err(CaseError::new("unbinding did not wait"));
            }
            thread::sleep(Duration::from_millis(20));
        }

        // Payload still arrives where it did, but memory can no longer be allocated.
        let seen = sink.wait_bytes(8 * MIB)?;
        sink.wait_bytes(seen + 8 * MIB)?;
        assert!(!unbind.is_finished(), "the NIC still writes there");
        let refused = bed.bind(bed.local, 0, ACCELERATOR, MIB);
        assert_refused(refused, ENOENT, "memory of a node that is gone");
        assert!(!unbind.is_finished(), "the NIC still writes there");

        source.stop()?;
        let report = sink.stop()?;
        assert_eq!(
            (report.mismatch, report.linear_bytes),
            (None, 0),
            "{report:?}"
        );
        // A processor may have deferred freeing payload to another, where it waits for the next
        // packet.
        while !unbind.is_finished() {
            bed.guest.call(FreeDeferred {})?;
            thread::sleep(Duration::from_millis(20));
        }
        unbind.join().expect("no panic")
    })?;

    bed.tell_driver(DRIVER, "bind", &address)?;
    let stream = bed.stream(bed.peer, bed.local, Family::V6).in_accelerator();
    let received = stream.receive_devmem(&bed, 1, 4 * MIB, 4 * MIB, |_| ())?;
    assert_eq!(received.verified, 4 * MIB, "{received:?}");
    bed.finish()
}

#[test]
fn what_one_user_left_in_an_accelerators_memory_the_next_does_not_find() -> Result {
    let bytes = MIB as usize;
    let bed = Testbed::accelerator(Topology::Switch, "accelerator-zeroed")?;
    // A job that holds memory and does nothing with it.
    let hold = || {
        bed.stream(bed.peer, bed.local, Family::V4)
            .in_accelerator()
            .copy_sink(&bed, MIB)
    };

    let mut first = hold()?;
    let ranges = first.wait_event(place)?;
    bed.guest
        .dmabuf(ranges.clone())?
        .write(0, &vec![0xa5; bytes])?;
    first.stop()?;

    let mut second = hold()?;
    let again = second.wait_event(place)?;
    assert_eq!(again, ranges, "the same memory is given out again");
    let mut found = vec![0xff; bytes];
    bed.guest.dmabuf(again)?.read(0, &mut found)?;
    assert!(found.iter().all(|byte| *byte == 0), "it was not cleared");
    second.stop()?;
    bed.finish()
}
