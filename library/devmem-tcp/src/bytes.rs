// SPDX-License-Identifier: MIT OR Apache-2.0

//! Fields of the kernel's structs, in host byte order, out of raw bytes.

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|field| u32::from_ne_bytes(*field))
}

pub(crate) fn i32_at(bytes: &[u8], offset: usize) -> Option<i32> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|field| i32::from_ne_bytes(*field))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|field| u64::from_ne_bytes(*field))
}

pub(crate) fn usize_at(bytes: &[u8], offset: usize) -> Option<usize> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|field| usize::from_ne_bytes(*field))
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|field| u16::from_ne_bytes(*field))
}
