// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the processor does for a program: windows of the counter in QEMU, as the program marks them.

use anyhow::{Context, Result};
use cases::Testbed;
use indicatif::{BinaryBytes, HumanCount};
use protocol::kernel::ReadFile;
use protocol::measure::{Edge, MarkWindow};
use vm::counter::{Accesses, Watch, Window};

use super::setup::Setup;

/// What is watched.
const ACCELERATOR: &str = "accelerator";
/// The addresses of the accelerator's BARs, a line each: its memory is BAR 2.
const RESOURCES: &str = "/sys/class/misc/ivshmem_mem0/device/resource";
const MEMORY_BAR: usize = 2;

/// Starts a window, which the program may start anew.
pub(super) fn begin(bed: &Testbed, setup: &Setup) -> Result<()> {
    if !setup.bare {
        bed.guest.watch(&[accelerator(bed)?])?;
    }
    Ok(bed.guest.call(MarkWindow { edge: Edge::Start })?)
}

/// Ends it, if the program has ended none, and prints all that there were.
pub(super) fn end(bed: &Testbed) -> Result<()> {
    bed.guest.call(MarkWindow { edge: Edge::End })?;
    for number in 0..bed.guest.windows() {
        let window = bed.guest.window(number)?;
        eprintln!("counted: window {number}: {}", line(&window));
    }
    Ok(())
}

fn accelerator(bed: &Testbed) -> Result<Watch> {
    let text = bed.guest.call(ReadFile::new(bed.local.ns, RESOURCES))?;
    let (start, last) = bar(&text).with_context(|| format!("{RESOURCES} has no BAR 2: {text}"))?;
    Ok(Watch {
        label: ACCELERATOR.to_owned(),
        start,
        len: last - start + 1,
    })
}

/// First and last address of the memory's BAR.
fn bar(resources: &str) -> Option<(u64, u64)> {
    let line = resources.lines().nth(MEMORY_BAR)?;
    let mut numbers = line
        .split_whitespace()
        .map(|number| u64::from_str_radix(number.trim_start_matches("0x"), 16));
    match (numbers.next()?, numbers.next()?) {
        (Ok(start), Ok(last)) if start < last => Some((start, last)),
        _ => None,
    }
}

fn line(window: &Window) -> String {
    let total = window.total();
    let mut line = format!(
        "{} instructions, {}",
        HumanCount(total.instructions + total.reps),
        bytes(&total.accesses)
    );
    for (label, accesses) in &window.ranges {
        line += &format!("; {label}: {}", bytes(accesses));
    }
    line
}

fn bytes(accesses: &Accesses) -> String {
    let (loaded, stored) = (BinaryBytes(accesses.loaded), BinaryBytes(accesses.stored));
    format!("{loaded} loaded, {stored} stored")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memorys_bar_is_found_among_the_resources() {
        let text = "0x00000000fea00000 0x00000000fea000ff 0x0000000000040200\n\
                    0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
                    0x0000003800000000 0x0000003803ffffff 0x000000000014220c\n";
        assert_eq!(bar(text), Some((0x38_0000_0000, 0x38_03ff_ffff)));
        assert_eq!(bar(""), None);
        assert_eq!(bar("0x0 0x0 0x0\n0x0 0x0 0x0\n0x0 0x0 0x0\n"), None);
    }
}
