// SPDX-License-Identifier: MIT OR Apache-2.0

//! Guests that go on from where another had booted.

mod common;

use std::{collections::BTreeSet, fs, path::Path};

use common::{WIRE, bring_up, ping};
use protocol::{Ns, kernel::ReadFile};
use vm::{Guest, Hypervisor, Images, Machine};

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

fn random(guest: &Guest) -> String {
    let path = "/proc/sys/kernel/random/uuid".to_owned();
    let file = ReadFile::new(Ns::Local, path);
    guest.call(file).unwrap()
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
