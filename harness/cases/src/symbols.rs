// SPDX-License-Identifier: MIT OR Apache-2.0

//! Functions of the kernel, where the counter in QEMU sees them.

use std::fs;

use vm::{Images, counter::Window};

use crate::{CaseError, Result};

/// How often functions of the kernel whose names match were entered in a window. Its `System.map` says where
/// they are.
///
/// # Errors
///
/// If the build has none, or none matches.
pub fn entries(window: &Window, matches: impl Fn(&str) -> bool) -> Result<u64> {
    let map = Images::from_env()?.symbols;
    let map = map.ok_or_else(|| CaseError::new("the kernel build has no System.map"))?;
    let text = fs::read_to_string(&map)
        .map_err(|error| CaseError::new(format!("{}: {error}", map.display())))?;
    let addresses: Vec<u64> = text
        .lines()
        .filter(|line| matches(line.rsplit(' ').next().unwrap_or_default()))
        .filter_map(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok())
        .collect();
    if addresses.is_empty() {
        let message = format!("{}: there is no such function", map.display());
        return Err(CaseError::new(message));
    }
    let blocks = window.blocks.iter();
    Ok(blocks
        .filter(|block| addresses.contains(&block.address))
        .map(|block| block.entries)
        .sum())
}
