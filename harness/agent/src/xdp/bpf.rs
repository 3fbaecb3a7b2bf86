// SPDX-License-Identifier: MIT OR Apache-2.0

//! The parts of the bpf(2) system call that are needed here.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use anyhow::{Context, Result};

use super::assembler::Instruction;

// From include/uapi/linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_DEVMAP: u32 = 14;
const MAP_TYPE_CPUMAP: u32 = 16;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const XDP_HAS_FRAGS: u32 = 1 << 5;

/// The part of `union bpf_attr` that creates a map.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

/// The part that accesses a map element.
#[repr(C)]
struct Element {
    map_fd: RawFd,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The part that loads a program.
#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

/// # Safety
///
/// `attr` must begin with the structure that `command` expects, and its pointers must be valid.
unsafe fn bpf<T>(command: libc::c_int, attr: &mut T) -> io::Result<RawFd> {
    // SAFETY: As this function requires; the kernel assumes zeroes beyond the end of `attr`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attr),
            size_of::<T>(),
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        // A file descriptor, or 0.
        result => Ok(result as RawFd),
    }
}

fn map(map_type: u32, value_size: u32, max_entries: u32) -> Result<OwnedFd> {
    let mut attr = MapCreate {
        map_type,
        key_size: 4,
        value_size,
        max_entries,
    };
    // SAFETY: The structure is the command's, and has no pointers.
    let fd = unsafe { bpf(MAP_CREATE, &mut attr) }.context("making a BPF map")?;
    // SAFETY: Just created, and owned by no one else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn element<T>(command: libc::c_int, map: &OwnedFd, key: u32, value: &mut T) -> io::Result<()> {
    let mut attr = Element {
        map_fd: map.as_raw_fd(),
        padding: 0,
        key: std::ptr::from_ref(&key) as u64,
        value: std::ptr::from_mut(value) as u64,
        flags: 0,
    };
    // SAFETY: The structure is the command's. Maps were created for keys of 4 bytes, and for values
    // of the size that callers use.
    unsafe { bpf(command, &mut attr) }.map(drop)
}

/// A counter: an array with one element.
pub(super) fn counter() -> Result<OwnedFd> {
    map(MAP_TYPE_ARRAY, size_of::<u64>() as u32, 1)
}

/// The value of a counter.
pub(super) fn count(counter: &OwnedFd) -> Result<u64> {
    let mut value = 0u64;
    element(MAP_LOOKUP_ELEM, counter, 0, &mut value).context("reading a counter")?;
    Ok(value)
}

/// A map with room up to element `key`, which is set to `value`.
fn map_to(map_type: u32, key: u32, mut value: u32) -> Result<OwnedFd> {
    let map = map(map_type, size_of::<u32>() as u32, key + 1)?;
    element(MAP_UPDATE_ELEM, &map, key, &mut value)?;
    Ok(map)
}

/// A map whose element 0 is the interface with this index in the namespace of the calling thread.
pub(super) fn device_map(index: u32) -> Result<OwnedFd> {
    map_to(MAP_TYPE_DEVMAP, 0, index).context("putting an interface into a map")
}

/// A map whose element `cpu` is that processor.
pub(super) fn cpu_map(cpu: u32) -> Result<OwnedFd> {
    /// Frames that may wait for the processor.
    const QUEUE: u32 = 2048;

    map_to(MAP_TYPE_CPUMAP, cpu, QUEUE).context("putting a processor into a map")
}

/// A map whose element `queue` is that XDP socket.
pub(super) fn socket_map(queue: u32, socket: BorrowedFd<'_>) -> Result<OwnedFd> {
    let fd = socket.as_raw_fd() as u32;
    map_to(MAP_TYPE_XSKMAP, queue, fd).context("putting a socket into a map")
}

/// Loads an XDP program. If the kernel's verifier rejects it, the error has the verifier's log.
pub(super) fn load(instructions: &[Instruction], fragments: bool) -> Result<OwnedFd> {
    let mut log = vec![0u8; 64 << 10];
    let mut attr = ProgLoad {
        prog_type: PROG_TYPE_XDP,
        insn_cnt: instructions.len() as u32,
        insns: instructions.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        log_level: 1,
        log_size: log.len() as u32,
        log_buf: log.as_mut_ptr() as u64,
        kern_version: 0,
        prog_flags: if fragments { XDP_HAS_FRAGS } else { 0 },
    };
    // SAFETY: The structure is the command's; what it points to is valid for the sizes in it.
    let fd = unsafe { bpf(PROG_LOAD, &mut attr) }.with_context(|| {
        let text = log.split(|byte| *byte == 0).next().unwrap_or_default();
        format!("loading a program: {}", String::from_utf8_lossy(text))
    })?;
    // SAFETY: Just created, and owned by no one else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
