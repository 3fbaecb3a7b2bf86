// SPDX-License-Identifier: MIT OR Apache-2.0

//! Guests that go on from where another had booted.

mod common;

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    thread,
    time::{Duration, SystemTime},
};

use common::{WIRE, bring_up, ping};
use protocol::{
    Ns,
    kernel::{LoadModule, ReadFile},
};
use vm::{Guest, Hypervisor, Images, Machine};
use vm_memory::{GuestMemoryBackend, GuestMemoryRegion};

/// The EtherType of what QEMU announces a machine with that moved.
const REVERSE_ARP: u16 = 0x8035;

/// A machine whose snapshots are in `dir`; none where the user wants KVM.
fn resumable(dir: &Path) -> Option<(Machine, Images)> {
    if std::env::var("NOBOUNCE_ACCEL").is_ok_and(|accelerator| accelerator == "kvm") {
        eprintln!("not emulated: it boots each time");
        return None;
    }
    let images = Images {
        snapshots: Some(dir.to_owned()),
        ..common::images()
    };
    let machine = Machine::new().snapshot().hypervisor(Hypervisor::Tcg);
    Some((machine, images))
}

/// What no two boots have in common: a line of the log, with its time in microseconds.
fn boot_of(guest: &Guest) -> String {
    let text = guest.console_text();
    text.lines().next().expect("a log").to_owned()
}

fn read(guest: &Guest, path: &str) -> String {
    guest.call(ReadFile::new(Ns::Local, path)).unwrap()
}

fn random(guest: &Guest) -> String {
    read(guest, "/proc/sys/kernel/random/uuid")
}

/// The time of day, to a second: when it was booted, and since when.
fn time(guest: &Guest) -> Duration {
    let stat = read(guest, "/proc/stat");
    let booted = stat.lines().find_map(|line| line.strip_prefix("btime "));
    let uptime = read(guest, "/proc/uptime");
    let uptime = uptime.split(' ').next().map(str::parse);
    Duration::from_secs(booted.unwrap().parse().unwrap())
        + Duration::from_secs_f64(uptime.unwrap().unwrap())
}

fn now() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap()
}

#[test]
fn a_guest_goes_on_from_where_an_equal_one_had_booted() {
    let dir = tempfile::tempdir().unwrap();
    let Some((machine, images)) = resumable(dir.path()) else {
        return;
    };
    let first = machine.boot(&images, "snapshot").unwrap();
    assert!(!first.resumed());
    assert!(first.unkept().is_none(), "{:?}", first.unkept());
    let boot = boot_of(&first);
    // The first goes on, and changes nothing that others find.
    bring_up(&first, 1500);
    let mut chances = BTreeSet::from([random(&first)]);
    first.finish().unwrap();

    for time in ["second", "third"] {
        let next = machine.boot(&images, "snapshot").unwrap();
        assert!(next.resumed(), "the {time} booted");
        assert_eq!(boot_of(&next), boot, "the {time}");
        assert!(chances.insert(random(&next)), "the {time}: {chances:?}");
        bring_up(&next, 1500);
        ping(&next, "192.0.2.2", 1000);
        let wire = fs::read(next.pcap(WIRE)).unwrap();
        assert!(wire.len() > 5 * 100);
        let announced = wire.windows(14).any(|header| {
            header.starts_with(&[0xff; 6]) && header.ends_with(&REVERSE_ARP.to_be_bytes())
        });
        assert!(!announced, "what a guest that booted does not send");
        next.finish().unwrap();
    }
}

#[test]
fn a_guest_that_was_prepared_is_kept_as_it_was_then() {
    const TEXT: &[u8] = b"of a guest before";
    const SECOND: Duration = Duration::from_secs(1);
    let dir = tempfile::tempdir().unwrap();
    let Some((machine, images)) = resumable(dir.path()) else {
        return;
    };
    let machine = machine
        .accelerator_memory_mib(16)
        .prepared("both NICs are up");
    let mut first = machine.boot(&images, "prepared").unwrap();
    assert!(!first.resumed());
    bring_up(&first, 1500);
    let (name, parameters) = ("ivshmem_mem".to_owned(), String::new());
    first.call(LoadModule { name, parameters }).unwrap();
    let accelerator = first.accelerator_memory().unwrap();
    let place = accelerator
        .memory()
        .iter()
        .map(|region| region.start_addr().0);
    let place = place.min().unwrap() + (1 << 20);
    accelerator.write(place, TEXT).unwrap();
    first.keep().unwrap();
    assert!(first.unkept().is_none(), "{:?}", first.unkept());
    // It goes on, and changes nothing that others find.
    first
        .accelerator_memory()
        .unwrap()
        .write(place, b"after")
        .unwrap();
    ping(&first, "192.0.2.2", 1000);
    first.finish().unwrap();

    thread::sleep(3 * SECOND);
    let before = now();
    let next = machine.boot(&images, "prepared").unwrap();
    assert!(next.resumed());
    let (time, after) = (time(&next), now());
    assert!(
        time + SECOND >= before && time <= after + SECOND,
        "{before:?}, {time:?}, {after:?}"
    );
    let mut found = [0; TEXT.len()];
    next.accelerator_memory()
        .unwrap()
        .read(place, &mut found)
        .unwrap();
    assert_eq!(found, TEXT);
    ping(&next, "192.0.2.2", 1000);
    next.finish().unwrap();

    let other = machine
        .prepared("otherwise")
        .boot(&images, "prepared")
        .unwrap();
    assert!(!other.resumed());
    other.finish().unwrap();
}

#[test]
fn an_unequal_machine_boots() {
    let dir = tempfile::tempdir().unwrap();
    let Some((machine, images)) = resumable(dir.path()) else {
        return;
    };
    let kinds = [
        machine.clone(),
        machine.clone().memory_mib(1536),
        machine.clone().cpus(1),
        machine.clone().kernel_parameter("other=1"),
        machine.clone().accelerator_memory_mib(16),
        machine.clone().accelerator_memory_mib(32),
        machine.wire_count(2),
    ];
    for resumed in [false, true] {
        for (number, machine) in kinds.iter().enumerate() {
            let guest = machine.boot(&images, "snapshot-other").unwrap();
            assert!(guest.unkept().is_none(), "{:?}", guest.unkept());
            assert_eq!(guest.resumed(), resumed, "machine {number}");
            guest.finish().unwrap();
        }
    }
}

#[test]
fn a_damaged_snapshot_keeps_nobody_from_booting() {
    for (file, replaced) in [("agent.json", true), ("ram", false), ("devices", false)] {
        let dir = tempfile::tempdir().unwrap();
        let Some((machine, images)) = resumable(dir.path()) else {
            return;
        };
        let kept = machine.boot(&images, "snapshot-damaged").unwrap();
        assert!(kept.unkept().is_none(), "{:?}", kept.unkept());
        kept.finish().unwrap();
        let mut damaged = 0;
        for snapshot in fs::read_dir(dir.path()).unwrap() {
            let path = snapshot.unwrap().path().join(file);
            if path.exists() {
                fs::write(path, "nobody has ever seen this").unwrap();
                damaged += 1;
            }
        }
        assert_eq!(damaged, 1, "{file}");
        let again = machine.boot(&images, "snapshot-damaged").unwrap();
        assert!(!again.resumed(), "of a damaged {file}");
        again.finish().unwrap();
        // What looks like a snapshot and is none may be none the next time, too.
        let next = machine.boot(&images, "snapshot-damaged").unwrap();
        assert_eq!(next.resumed(), replaced, "after a damaged {file}");
        next.finish().unwrap();
    }
}
