// SPDX-License-Identifier: MIT OR Apache-2.0

//! Accelerator memory: it is allocated and freed, and NICs reach it where the PCI topology allows.

use std::{
    thread,
    time::{Duration, Instant},
};

use cases::{
    ACCELERATOR, ACCELERATOR_MIB, Ability, Family, Options, Result, Testbed, assert_fails_saying,
    assert_refused, assert_refused_saying,
};
use libc::{EAGAIN, ENODEV, ENOENT, ENOMEM, EXDEV};
use protocol::{Memory, kernel::FreeDeferred};
use vm::Topology;

const MIB: u64 = 1 << 20;

/// How long it may take until memory is freed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Receives into so many bytes of the accelerator over one family, and sends from as many over the other.
fn payload_goes_both_ways(bed: &Testbed, memory: u64) -> Result {
    let bytes = 16 * MIB;
    let stream = bed.stream(bed.peer, bed.local, Family::V4).in_accelerator();
    let received = stream.receive_devmem(bed, 1, bytes, memory, |_| ())?;
    received.assert_whole(bytes);
    assert_eq!(bed.net_iovs_left(bed.local)?, 0);

    let stream = bed.stream(bed.local, bed.peer, Family::V6).in_accelerator();
    let sent = stream.send_devmem(bed, bytes, memory, 256 << 10, |_| ())?;
    assert_eq!(
        (sent.sink.bytes, sent.sink.mismatch),
        (bytes, None),
        "all bytes of the accelerator's memory arrived: {sent:?}"
    );
    assert_eq!(
        (sent.source.completions, sent.source.copied),
        (sent.source.sends, 0),
        "{sent:?}"
    );
    Ok(())
}

/// The same, of an accelerator that is connected like this.
fn payload_goes_through(options: Options, topology: Topology, name: &str) -> Result {
    let bed = options.accelerator(topology).boot_steered(name)?;
    payload_goes_both_ways(&bed, 16 * MIB)?;
    bed.finish()
}

#[test]
fn payload_goes_into_and_out_of_an_accelerator_behind_the_same_switch() -> Result {
    let options = Testbed::devmem_options();
    payload_goes_through(options, Topology::Switch, "accelerator-switch")
}

#[test]
fn payload_goes_into_and_out_of_an_accelerator_through_the_root_complex() -> Result {
    let options = Testbed::devmem_options();
    payload_goes_through(options, Topology::RootComplex, "accelerator-root-complex")
}

#[test]
fn payload_goes_into_and_out_of_an_accelerator_through_an_iommu() -> Result {
    let options = Testbed::devmem_options()
        .needs([Ability::PeersThroughIommu])
        .iommu();
    payload_goes_through(options, Topology::RootComplex, "accelerator-iommu")
}

#[test]
fn a_jumbo_frame_is_received_in_one_buffer_of_the_accelerator() -> Result {
    let bytes = 16 * MIB;
    let options = Testbed::devmem_options().accelerator(Topology::Switch);
    let options = options.needs_rx_page_size(16 << 10);
    let bed = options.boot_steered("accelerator-16k")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4).in_accelerator();
    let stream = stream.in_buffers_of(16 << 10);
    let received = stream.receive_devmem(&bed, 1, bytes, 32 * MIB, |_| ())?;
    assert_eq!(
        (received.verified, received.sink.linear_bytes),
        (bytes, 0),
        "{received:?}"
    );
    // Frames of 9000 bytes in page-sized buffers would be three fragments each.
    assert!(received.sink.fragments < 2 * bytes / 8948, "{received:?}");
    bed.finish()
}

#[test]
fn without_a_peer_to_peer_path_a_bind_is_refused_and_all_else_works() -> Result {
    let bed = Testbed::accelerator(Topology::RootPorts, "accelerator-no-path")?;

    let refused = bed.bind(bed.local, 1, ACCELERATOR, 4 * MIB);
    assert_refused_saying(refused, EXDEV, "one PCIe switch");

    // The same goes for sending.
    let stream = bed.stream(bed.local, bed.peer, Family::V4);
    let sink = stream.sink(&bed)?;
    let accelerated = stream.clone().in_accelerator();
    let refused = accelerated.devmem_source(&bed, Some(MIB), MIB, 64 << 10);
    assert_fails_saying(refused, "one PCIe switch");
    sink.stop()?;
    // The kernel's log says so, too.
    bed.wait_logged("no peer-to-peer DMA from", 1)?;

    // The queue, the NIC and the accelerator's memory are as before.
    bed.transfer(bed.peer, bed.local, Family::V6, 4 * MIB)?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let received = stream.receive_devmem(&bed, 1, 4 * MIB, 4 * MIB, |_| ())?;
    assert_eq!(received.verified, 4 * MIB, "{received:?}");
    bed.unload_accelerator()?;
    bed.finish()
}

#[test]
fn a_bar_of_registers_is_not_taken_for_memory() -> Result {
    /// The first BARs of QEMU's vmxnet3 are registers, and not prefetchable.
    const DEVICE: &str = "0000:00:10.0";
    let bed = Testbed::options()
        .accelerator(Topology::Switch)
        .machine(|machine| {
            machine
                .qemu_argument("-device")
                .qemu_argument("vmxnet3,addr=10.0,romfile=")
        })
        .boot("accelerator-registers")?;
    let driver_override = format!("/sys/bus/pci/devices/{DEVICE}/driver_override");
    bed.write_file(driver_override, "ivshmem_mem")?;
    let refused = bed.tell_driver("ivshmem_mem", "bind", DEVICE);
    assert_refused(refused, ENODEV, "binding to registers");
    bed.wait_logged("BAR 2 is not prefetchable memory", 1)?;
    bed.unload_accelerator()?;
    bed.finish()
}

#[test]
fn payload_is_received_and_sent_behind_the_first_four_gigabytes_of_an_accelerator() -> Result {
    const GIB: u64 = 1 << 30;
    let bed = Testbed::devmem_options()
        .accelerator(Topology::Switch)
        .machine(|machine| machine.accelerator_memory_mib(8 << 10))
        .boot_steered("accelerator-gigabytes")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let held = stream.in_accelerator().copy_sink(&bed, 5 * GIB)?;
    payload_goes_both_ways(&bed, 16 * MIB)?;
    held.stop()?;
    bed.finish()
}

#[test]
fn all_of_an_accelerators_memory_is_given_out_and_comes_back() -> Result {
    let all = ACCELERATOR_MIB * MIB;
    let bed = Testbed::accelerator(Topology::Switch, "accelerator-memory")?;
    // A job that needs memory and no queue.
    let hold = |bytes: u64| {
        let stream = bed.stream(bed.peer, bed.local, Family::V4);
        stream.in_accelerator().copy_sink(&bed, bytes)
    };
    // A closed binding keeps its memory until its page pool has everything back, which the kernel
    // checks once a second.
    let hold_again = |bytes: u64| {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match hold(bytes) {
                Err(error) if error.errno() == Some(ENOMEM) && Instant::now() < deadline => {
                    bed.guest.call(FreeDeferred {})?;
                    thread::sleep(Duration::from_millis(100));
                }
                answer => return answer,
            }
        }
    };
    let assert_full =
        |bytes: u64| assert_refused(hold(bytes), ENOMEM, &format!("{bytes} bytes more"));

    for _ in 0..2 {
        let halves = [hold(all / 2)?, hold(all / 2)?];
        assert_full(4096);
        for half in halves {
            half.stop()?;
        }
        // With half of it in use, the whole cannot be allocated.
        let half = hold(all / 2)?;
        assert_full(all);
        half.stop()?;
        let whole = bed.bind(bed.local, 1, ACCELERATOR, all)?;
        assert_full(4096);
        // The driver cannot be unloaded while its memory is in use.
        let busy = bed.unload_accelerator();
        assert_refused(busy, EAGAIN, "unloading the driver");
        whole.stop()?;
        hold_again(all)?.stop()?;
    }

    bed.unload_accelerator()?;
    let missing = bed.bind(bed.local, 1, ACCELERATOR, MIB);
    assert_refused_saying(missing, ENOENT, "ivshmem_mem.ko");
    bed.load_accelerator()?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4).in_accelerator();
    let received = stream.receive_devmem(&bed, 1, 4 * MIB, all, |_| ())?;
    assert_eq!(received.verified, 4 * MIB, "{received:?}");
    bed.finish()
}

#[test]
fn a_udmabuf_and_an_accelerators_memory_are_bound_side_by_side() -> Result {
    let bytes = 8 * MIB;
    let options = Testbed::options()
        .binds([1, 2])
        .cpus(3)
        .mtu(9000)
        .header_split();
    let bed = options
        .accelerator(Topology::Switch)
        .boot("accelerator-side-by-side")?;
    bed.steer(bed.local, &[1, 2])?;

    let ram = bed
        .stream(bed.peer, bed.local, Family::V4)
        .reaching(&bed, 1)?;
    let accelerator = bed
        .stream(bed.peer, bed.local, Family::V6)
        .reaching(&bed, 2)?;
    let accelerator = accelerator.in_accelerator();
    assert_eq!(ram.memory, Memory::Udmabuf);
    thread::scope(|scope| {
        let one = scope.spawn(|| ram.receive_devmem(&bed, 1, bytes, 8 * MIB, |_| ()));
        let two = scope.spawn(|| accelerator.receive_devmem(&bed, 2, bytes, 8 * MIB, |_| ()));
        for received in [one, two].map(|thread| thread.join().expect("no panic")) {
            let received = received?;
            assert_eq!(
                (received.verified, received.sink.linear_bytes),
                (bytes, 0),
                "{received:?}"
            );
        }
        Result::Ok(())
    })?;
    bed.finish()
}
