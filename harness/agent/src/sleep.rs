// SPDX-License-Identifier: MIT OR Apache-2.0

//! Suspend-to-RAM.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
};

use anyhow::{Context, Result};

use crate::{files, outbox};

/// What firmware has to restore, but SeaBIOS does not on a q35: a device, and an offset in its
/// configuration space. These are the host bridge's ECAM window (PCIEXBAR), and the address of the
/// registers that power the machine off (PMBASE, ACPI_CNTL).
const CHIPSET: [(&str, u64); 2] = [("0000:00:00.0", 0x60), ("0000:00:1f.0", 0x40)];

/// Suspends the guest, and returns when it is awake again.
///
/// The port is unbound meanwhile: on resume, `virtcons_restore()` asks the device whether the host
/// is connected before the device has a buffer to answer in, and considers it absent ever after.
pub(crate) fn sleep() -> Result<()> {
    outbox::without_port(|| {
        let mut saved = [[0; 8]; CHIPSET.len()];
        for ((device, offset), value) in CHIPSET.into_iter().zip(&mut saved) {
            configuration(device)?.read_exact_at(value, offset)?;
        }
        let slept = files::write("/sys/power/state", "mem");
        for ((device, offset), value) in CHIPSET.into_iter().zip(&saved) {
            configuration(device)?.write_all_at(value, offset)?;
        }
        slept
    })
}

fn configuration(device: &str) -> Result<File> {
    let path = format!("/sys/bus/pci/devices/{device}/config");
    let file = OpenOptions::new().read(true).write(true).open(&path);
    file.with_context(|| format!("opening {path}"))
}
