// SPDX-License-Identifier: MIT OR Apache-2.0

//! Registers of a PCI device, accessed behind its driver's back, to make the device misbehave.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
};

use anyhow::{Context, Result, ensure};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Reads a register of the first BAR.
pub(crate) fn read(device: &str, offset: u32) -> Result<u32> {
    // SAFETY: the address is in the BAR, which is mapped, and aligned.
    at(device, offset, |register| unsafe {
        register.read_volatile()
    })
}

/// Writes a register of the first BAR.
pub(crate) fn write(device: &str, offset: u32, value: u32) -> Result<()> {
    // SAFETY: as above.
    at(device, offset, |register| unsafe {
        register.write_volatile(value);
    })
}

/// Reads a word in the configuration space.
pub(crate) fn read_config(device: &str, offset: u16) -> Result<u16> {
    let path = format!("/sys/bus/pci/devices/{device}/config");
    let mut value = [0; 2];
    File::open(&path)
        .and_then(|file| file.read_exact_at(&mut value, offset.into()))
        .with_context(|| format!("reading {path}"))?;
    Ok(u16::from_le_bytes(value))
}

/// Writes a word in the configuration space.
pub(crate) fn write_config(device: &str, offset: u16, value: u16) -> Result<()> {
    let path = format!("/sys/bus/pci/devices/{device}/config");
    let file = OpenOptions::new().write(true).open(&path);
    file.and_then(|file| file.write_all_at(&value.to_le_bytes(), offset.into()))
        .with_context(|| format!("writing into {path}"))
}

/// Maps the BAR while `access` has the register's address.
fn at<T>(device: &str, offset: u32, access: impl FnOnce(*mut u32) -> T) -> Result<T> {
    let path = format!("/sys/bus/pci/devices/{device}/resource0");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("opening {path}"))?;
    let length = file.metadata()?.len() as usize;
    let offset = offset as usize;
    ensure!(
        offset % size_of::<u32>() == 0 && offset < length,
        "{path} has no register at {offset:#x}"
    );
    let protection = ProtFlags::READ | ProtFlags::WRITE;

    // SAFETY: a mapping at an address that the kernel chooses touches no other memory.
    let bar = unsafe {
        mmap(
            std::ptr::null_mut(),
            length,
            protection,
            MapFlags::SHARED,
            &file,
            0,
        )
    }
    .with_context(|| format!("mapping {path}"))?;
    let result = access(bar.cast::<u8>().wrapping_add(offset).cast());
    // SAFETY: mapped above, and no pointers into it are left.
    unsafe { munmap(bar, length) }.with_context(|| format!("unmapping {path}"))?;
    Ok(result)
}
