// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which part of the kernel a function belongs to, by the object file that it was compiled into.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, bail};
use fs_err as fs;
use object::{Object, ObjectSymbol, SymbolKind};
use provision::files;

use super::profile::Function;

/// The parts of a profile, in the order of tables.
pub(crate) const PARTS: &[&str] = &[
    "driver",
    "GRO and skb",
    "TCP/IP",
    "copy",
    "page pool",
    "memory",
    "interrupts, scheduling, system calls",
    "program",
    "other",
];

/// Where the object files of each part are, the first that fits. Paths are those of the kernel.
const PLACES: &[(&str, &str)] = &[
    ("net/core/page_pool", "page pool"),
    ("net/core/devmem", "page pool"),
    ("net/core/netmem", "page pool"),
    ("lib/xarray", "page pool"),
    ("io_uring/zcrx", "page pool"),
    ("net/core/sock", "TCP/IP"),
    ("net/core/stream", "TCP/IP"),
    ("net/core/dst", "TCP/IP"),
    ("net/core/neighbour", "TCP/IP"),
    ("net/core/", "GRO and skb"),
    ("net/ethernet/", "GRO and skb"),
    ("net/sched/", "GRO and skb"),
    ("net/ipv", "TCP/IP"),
    ("net/", "interrupts, scheduling, system calls"),
    ("drivers/net/", "driver"),
    ("lib/iov_iter", "copy"),
    ("arch/x86/lib/copy", "copy"),
    ("arch/x86/lib/usercopy", "copy"),
    ("arch/x86/lib/mem", "copy"),
    ("mm/", "memory"),
    ("kernel/dma/", "driver"),
    ("kernel/", "interrupts, scheduling, system calls"),
    ("arch/x86/", "interrupts, scheduling, system calls"),
    ("fs/", "interrupts, scheduling, system calls"),
    (
        "drivers/char/random",
        "interrupts, scheduling, system calls",
    ),
    ("drivers/pci/", "interrupts, scheduling, system calls"),
    ("drivers/dma-buf/", "memory"),
    ("io_uring/", "interrupts, scheduling, system calls"),
];

/// Where object files are looked for.
const FOLDERS: &[&str] = &[
    "arch/x86", "drivers", "fs", "io_uring", "kernel", "lib", "mm", "net",
];

/// Object files of functions.
#[derive(Default)]
pub(crate) struct Parts {
    by_function: HashMap<String, &'static str>,
}

impl Parts {
    /// Reads the symbols of all object files of a kernel's build.
    ///
    /// # Errors
    ///
    /// When a folder cannot be read, or there are no object files.
    pub(crate) fn read(build: &Path) -> Result<Self> {
        let mut by_function = HashMap::new();
        for folder in FOLDERS {
            read_folder(build, &build.join(folder), &mut by_function)?;
        }
        if by_function.is_empty() {
            bail!(
                "no object file in {} says which part of the kernel a function is of: remove the folder, and that kernel is built again",
                build.display()
            );
        }
        Ok(Self { by_function })
    }

    /// The part of a function: one of [`PARTS`].
    pub(crate) fn of(&self, function: &Function) -> &'static str {
        match &function.module {
            Some(_) => "driver",
            None if function.is_program() => "program",
            None => {
                // The compiler's copies are called name.constprop.0 and the like.
                let name = function.name.split('.').next().unwrap_or_default();
                self.by_function.get(name).copied().unwrap_or("other")
            }
        }
    }
}

fn read_folder(
    build: &Path,
    folder: &Path,
    into: &mut HashMap<String, &'static str>,
) -> Result<()> {
    for path in files::entries(folder)? {
        if path.is_dir() {
            read_folder(build, &path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "o") {
            let Ok(relative) = path.strip_prefix(build) else {
                continue;
            };
            let relative = relative.to_string_lossy();
            let place = PLACES.iter().find(|(start, _)| relative.starts_with(start));
            if let Some((_, part)) = place {
                read_object(&path, part, into);
            }
        }
    }
    Ok(())
}

/// What is no ELF file has no functions.
fn read_object(path: &Path, part: &'static str, into: &mut HashMap<String, &'static str>) {
    let Ok(bytes) = fs::read(path) else { return };
    let Ok(file) = object::File::parse(bytes.as_slice()) else {
        return;
    };
    for symbol in file.symbols() {
        let code = symbol.is_definition()
            && matches!(
                symbol.kind(),
                SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown
            );
        if let (true, Ok(name)) = (code, symbol.name()) {
            into.entry(name.split('.').next().unwrap_or(name).to_owned())
                .or_insert(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_whose_object_files_were_removed_is_refused() {
        let build = tempfile::tempdir().unwrap();
        for folder in FOLDERS {
            fs::create_dir_all(build.path().join(folder)).unwrap();
        }
        let error = Parts::read(build.path()).err().unwrap();
        assert!(error.to_string().contains("is built again"), "{error}");
    }

    #[test]
    fn every_place_belongs_to_a_part_that_tables_show() {
        for (place, part) in PLACES {
            assert!(PARTS.contains(part), "{place}: {part}");
        }
    }
}
