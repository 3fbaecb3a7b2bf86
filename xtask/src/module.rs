// SPDX-License-Identifier: MIT OR Apache-2.0

//! Builds the modules out of tree, and finds the modules that a kernel build has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use object::{Object, ObjectSection, ObjectSymbol};

use crate::kernel::{self, Kernel};
use crate::project::Project;
use crate::stamp::{self, Stamp};
use crate::ui::Step;

/// The file of the checkout that says what modules there are.
pub(crate) const KBUILD: &str = "Kbuild";
/// What the list of drivers on `net` begins with there.
const NET_DRIVERS: &str = "net-drivers := ";
/// The network driver that is more than a crate on `net`.
const NIC: &str = "rigb";
/// The accelerator's, and the option that Kbuild builds them for.
const ACCELERATOR: ([&str; 2], &str) = (["ivshmem_mem", "copy_engine"], "PCI_P2PDMA");

/// What tells one build of a kernel from another.
const KERNEL_FILES: &[&str] = &[".config", "Module.symvers", "arch/x86/boot/bzImage"];

/// Builds the modules that the kernel has the options for, where something changed.
///
/// # Errors
///
/// When make fails.
pub(crate) fn build(project: &Project, kernel: &Kernel) -> Result<Vec<PathBuf>> {
    let (root, out) = (&project.root, project.out("module"));
    let log = project.log("module");
    // Of a kernel that is built elsewhere, only make knows what changed.
    if !kernel.build.starts_with(project.cache.dir()) {
        return build_in(root, &out, kernel, &log);
    }
    let mut inputs: Vec<_> = stamp::files(root, "drivers")?;
    inputs.push(KBUILD.into());
    let inputs = inputs.iter().map(|path| root.join(path));
    let kernels = KERNEL_FILES.iter().map(|name| kernel.build.join(name));
    let stamp = Stamp::new(
        out.join("stamp"),
        &[],
        &inputs.chain(kernels).collect::<Vec<_>>(),
    )?;
    let modules = paths(root, &out, kernel)?;
    if !stamp.is_of(&modules) {
        build_in(root, &out, kernel, &log)?;
        stamp.keep(&modules)?;
    }
    Ok(modules)
}

/// As [`build`], of the sources in `source`, into `out`.
///
/// # Errors
///
/// When make fails.
pub(crate) fn build_in(
    source: &Path,
    out: &Path,
    kernel: &Kernel,
    log: &Path,
) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(out)?;
    let modules = paths(source, out, kernel)?;
    let names = modules.iter().filter_map(|module| module.file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    let step = Step::begin("module", &format!("building {}", names.join(", ")));
    make(source, kernel, out).step(&step, log)?;
    if let Some(missing) = modules.iter().find(|module| !module.is_file()) {
        bail!(
            "make built no {}; log: {}",
            missing.display(),
            log.display()
        );
    }
    step.done(&format!(
        "{} in {} for {}",
        names.join(", "),
        out.display(),
        kernel.release
    ));
    Ok(modules)
}

/// The modules that the kernel has the options for, in the folder where they are built.
fn paths(source: &Path, out: &Path, kernel: &Kernel) -> Result<Vec<PathBuf>> {
    let kbuild = source.join(KBUILD);
    let text = fs::read_to_string(&kbuild)?;
    let (accelerator, option) = ACCELERATOR;
    let accelerator = accelerator.into_iter();
    let accelerator = accelerator.filter(|_| kernel.config.get(option) == "y");
    let names = [NIC].into_iter().chain(net_drivers(&text)?);
    Ok(names
        .chain(accelerator)
        .map(|name| out.join(format!("{name}.ko")))
        .collect())
}

/// The drivers on `net` alone that a Kbuild names.
fn net_drivers(kbuild: &str) -> Result<impl Iterator<Item = &str>> {
    let mut lines = kbuild.lines();
    let list = lines.find_map(|line| line.strip_prefix(NET_DRIVERS));
    let list = list.with_context(|| format!("{KBUILD} has no line `{NET_DRIVERS}…`"))?;
    Ok(list.split_whitespace())
}

/// A Kbuild that names another driver on `net`.
///
/// # Errors
///
/// When it names it already, or no such driver.
pub(crate) fn add_net_driver(kbuild: &str, name: &str) -> Result<String> {
    if net_drivers(kbuild)?.any(|known| known == name) {
        bail!("{KBUILD} has a driver {name} already");
    }
    let add = |line: &str| match line.starts_with(NET_DRIVERS) {
        true => format!("{line} {name}\n"),
        false => format!("{line}\n"),
    };
    Ok(kbuild.lines().map(add).collect())
}

/// Builds the modules of a folder that is not ours, out of tree, into `out`.
///
/// # Errors
///
/// When make fails, or builds none.
pub(crate) fn build_folder(
    source: &Path,
    out: &Path,
    kernel: &Kernel,
    project: &Project,
) -> Result<Vec<PathBuf>> {
    let source = fs::canonicalize(source)?;
    fs::create_dir_all(out)?;
    let log = project.log("nic");
    let step = Step::begin("module", &format!("building {}", source.display()));
    make(&source, kernel, out).step(&step, &log)?;
    let order = fs::read_to_string(out.join("modules.order")).unwrap_or_default();
    let built: Vec<_> = by_name(&order)
        .into_values()
        .filter_map(|path| Some(out.join(path.file_name()?)))
        .filter(|path| path.is_file())
        .collect();
    if built.is_empty() {
        bail!(
            "make built no module of {}; log: {}",
            source.display(),
            log.display()
        );
    }
    step.done(&format!("{} modules of {}", built.len(), source.display()));
    Ok(built)
}

/// Sees to it that each module that is to be loaded is among `modules`.
///
/// # Errors
///
/// When one is not.
pub(crate) fn check_all_there(wanted: &[String], modules: &[PathBuf]) -> Result<()> {
    let there = |name: &String| {
        let stems = modules.iter().filter_map(|path| path.file_stem());
        let mut names = stems.map(|stem| canonical(&stem.to_string_lossy()));
        names.any(|found| found == canonical(name))
    };
    match wanted.iter().find(|name| !there(name)) {
        None => Ok(()),
        Some(missing) => bail!(
            "there is no module {missing}: neither does the kernel have it, nor do `build` and \
             `modules` name it"
        ),
    }
}

/// `make … modules` of the sources in `source`, into `out`.
pub(crate) fn make(source: &Path, kernel: &Kernel, out: &Path) -> crate::cmd::Cmd {
    kernel::make(kernel)
        .arg(format!("M={}", source.display()))
        .arg(format!("MO={}", out.display()))
        .arg("modules")
}

/// The first of the core library's panicking functions that a module refers to.
///
/// # Errors
///
/// When the module can't be read.
pub(crate) fn panics(module: &Path) -> Result<Option<String>> {
    let bytes = fs::read(module)?;
    let elf = object::File::parse(bytes.as_slice())
        .with_context(|| format!("{} is no ELF file", module.display()))?;
    let names = elf.symbols().filter(|symbol| symbol.is_undefined());
    for name in names.filter_map(|symbol| symbol.name().ok()) {
        let name = format!("{:#}", rustc_demangle::demangle(name));
        if name.starts_with("core::panicking::") {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The named modules of a kernel build and all that they depend on, as files.
/// A name that the kernel has built in, or hasn't at all, is left out.
///
/// # Errors
///
/// When the build's list of modules or one of the modules can't be read.
pub(crate) fn with_dependencies(kernel: &Kernel, wanted: &[&str]) -> Result<Vec<PathBuf>> {
    let order = kernel.build.join("modules.order");
    let text = fs::read_to_string(&order)?;
    let known = by_name(&text);
    let mut found = BTreeSet::new();
    let mut queue: Vec<String> = wanted.iter().map(|name| canonical(name)).collect();
    while let Some(name) = queue.pop() {
        let Some(path) = known.get(&name).map(|path| kernel.build.join(path)) else {
            continue;
        };
        if found.insert(path.clone()) {
            queue.extend(dependencies(&path)?);
        }
    }
    Ok(found.into_iter().collect())
}

/// Module names to the paths of their files, from a `modules.order`, which
/// lists objects: `drivers/i2c/i2c-core.o`.
fn by_name(order: &str) -> BTreeMap<String, PathBuf> {
    order
        .lines()
        .map(|line| Path::new(line).with_extension("ko"))
        .filter_map(|path| {
            let name = canonical(path.file_stem()?.to_str()?);
            Some((name, path))
        })
        .collect()
}

/// The kernel takes `-` and `_` in module names as the same.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// The modules that a module names in `depends=` of its `.modinfo`.
fn dependencies(module: &Path) -> Result<Vec<String>> {
    let bytes = fs::read(module)?;
    let elf = object::File::parse(bytes.as_slice())
        .with_context(|| format!("{} is no ELF file", module.display()))?;
    let modinfo = elf
        .section_by_name(".modinfo")
        .with_context(|| format!("{} has no .modinfo", module.display()))?;
    Ok(depends(modinfo.data()?))
}

fn depends(modinfo: &[u8]) -> Vec<String> {
    modinfo
        .split(|byte| *byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix("depends="))
        .flat_map(|list| list.split(','))
        .filter(|name| !name.is_empty())
        .map(canonical)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_modinfo() {
        let modinfo = b"license=GPL v2\0depends=i2c-core,i2c-algo-bit\0name=igb\0\0";
        assert_eq!(depends(modinfo), ["i2c_core", "i2c_algo_bit"]);
        assert!(depends(b"license=GPL\0depends=\0").is_empty());
        assert!(depends(b"").is_empty());
    }

    #[test]
    fn a_driver_is_added_to_those_on_net_once() {
        let kbuild = "# nothing\nnet-drivers := rwire\nobj-m := rigb.o\n";
        let added = add_net_driver(kbuild, "mynic").unwrap();
        assert_eq!(
            added,
            "# nothing\nnet-drivers := rwire mynic\nobj-m := rigb.o\n"
        );
        let names: Vec<_> = net_drivers(&added).unwrap().collect();
        assert_eq!(names, ["rwire", "mynic"]);
        assert!(add_net_driver(&added, "mynic").is_err());
        assert!(add_net_driver("obj-m := rigb.o\n", "mynic").is_err());
    }

    #[test]
    fn the_smallest_driver_is_as_short_as_its_page_says() {
        let driver = include_str!("../../drivers/rwire/rwire_main.rs");
        assert!(driver.lines().count() <= 300);
    }

    #[test]
    fn modules_are_found_by_either_spelling_of_their_name() {
        let known = by_name("drivers/i2c/i2c-core.o\ndrivers/net/netdevsim/netdevsim.o\n");
        assert_eq!(known["i2c_core"], Path::new("drivers/i2c/i2c-core.ko"));
        assert_eq!(
            known["netdevsim"],
            Path::new("drivers/net/netdevsim/netdevsim.ko")
        );
    }
}
