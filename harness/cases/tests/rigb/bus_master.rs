// SPDX-License-Identifier: MIT OR Apache-2.0

//! The device has no request pending on the bus when the driver resets it (82576 datasheet, 5.2.3.3).
//!
//! QEMU's device never has one, so it is made to trace its register accesses.

use std::fs;

use cases::{Ability, Result, Testbed};
use serde_json::json;

/// Registers and their bits (82576 datasheet, 8.2.1, 8.2.2).
const CTRL: u64 = 0;
const MASTER_DISABLE: u64 = 1 << 2;
const RESET: u64 = 1 << 26;
const STATUS: u64 = 8;
const MASTER_ENABLED: u64 = 1 << 19;

/// An access to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read(u64, u64),
    Write(u64, u64),
}

/// A line is `Write to register 0x0, 4 byte(s), value: 0x1`, after what the access is called.
fn access(line: &str) -> Option<Access> {
    let hexadecimal = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (_, rest) = line.split_once(" register ")?;
    let register = hexadecimal(rest.split_once(',')?.0)?;
    let value = hexadecimal(rest.split_once("value: ")?.1.trim())?;
    match line {
        _ if line.contains("Write to register") => Some(Access::Write(register, value)),
        _ if line.contains("Read from register") => Some(Access::Read(register, value)),
        _ => None,
    }
}

/// All register accesses that have been traced, those of `action` last.
fn accesses(bed: &Testbed, action: impl FnOnce() -> Result) -> Result<Vec<Access>> {
    let log = bed.guest.directory().join("qemu.log");
    let trace = |enable: bool| -> Result {
        for event in ["e1000e_core_read", "e1000e_core_write"] {
            let arguments = json!({ "name": event, "enable": enable });
            bed.guest.monitor("trace-event-set-state", arguments)?;
        }
        Ok(())
    };
    trace(true)?;
    action()?;
    trace(false)?;
    Ok(fs::read_to_string(log)?
        .lines()
        .filter_map(access)
        .collect())
}

/// How often the device is reset, each time without a request pending.
fn resets(accesses: &[Access]) -> usize {
    let mut disabled = false;
    let mut resets = 0;
    for (at, access) in accesses.iter().enumerate() {
        match *access {
            Access::Write(CTRL, value) if value & RESET != 0 => {
                let before = &accesses[at.saturating_sub(10)..=at];
                assert!(disabled, "a reset with requests enabled: {before:x?}");
                disabled = false;
                resets += 1;
            }
            Access::Write(CTRL, value) if value & MASTER_DISABLE == 0 => disabled = false,
            Access::Read(STATUS, value) => disabled = value & MASTER_ENABLED == 0,
            _ => {}
        }
    }
    resets
}

#[test]
fn the_device_is_reset_when_it_has_no_request_pending() -> Result {
    let options = Testbed::options().needs([Ability::RegisterTrace]);
    let bed = options.boot("bus-master")?;
    let device = bed.pci_device(bed.local)?;
    let tell = |what| bed.tell_driver(bed.driver(), what, &device);
    // The driver leaves the device, and takes it again.
    let unbound = accesses(&bed, || tell("unbind"))?;
    assert_eq!(resets(&unbound), 1, "{unbound:x?}");
    let both = accesses(&bed, || tell("bind"))?;
    assert_eq!(resets(&both), 2, "{both:x?}");

    bed.take_in(bed.local)?;
    bed.set_up_station(bed.local)?;
    bed.wait_carrier(true)?;
    bed.finish()
}
