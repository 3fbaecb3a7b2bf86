// SPDX-License-Identifier: MIT OR Apache-2.0

//! `new-driver`: a network driver on `net` that builds and loads, to begin with, and the description
//! of its NIC for the cases.

use anyhow::{Result, bail};
use clap::Args;
use fs_err as fs;

use crate::module::{self, KBUILD};
use crate::program;
use crate::project::Project;

/// Where the checkout has it.
const SKELETON: &str = "drivers/skeleton.rs.in";

/// What it is for.
#[derive(Args)]
pub(crate) struct Options {
    /// The module's name, such as `mynic`
    name: String,
    /// The PCI vendor, a name of the kernel's rust/kernel/pci/id.rs
    #[arg(long, default_value = "INTEL", value_parser = vendor)]
    vendor: String,
    /// The PCI device ID
    #[arg(long, default_value = "0x10c9", value_parser = device)]
    device: String,
    /// QEMU's device for it, with properties if it has any
    #[arg(long, value_name = "DEVICE", default_value = "igb")]
    qemu_device: String,
    /// For the module's description
    #[arg(long, default_value = "")]
    author: String,
}

/// Writes the driver, and has Kbuild build it.
///
/// # Errors
///
/// When there is one of this name, or it is no name, or the checkout can't be written.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let name = &options.name;
    check_name(name)?;
    let folder = project.root.join("drivers").join(name);
    if folder.exists() {
        bail!("there is a {} already", folder.display());
    }
    // Not in harness/nics, whose NICs are all part of `make test`.
    let nic = folder.join(format!("{name}.toml"));
    let kbuild = project.root.join(KBUILD);
    let text = fs::read_to_string(&kbuild)?;
    let added = module::add_net_driver(&text, name)?;
    let skeleton = project.root.join(SKELETON);
    let skeleton = fs::read_to_string(&skeleton)?;
    let source = folder.join(format!("{name}_main.rs"));
    fs::create_dir(&folder)?;
    fs::write(&source, filled_in(&skeleton, options))?;
    fs::write(&kbuild, added)?;
    fs::write(&nic, description(options))?;
    println!(
        "{}\n{}\n\nIt is in Kbuild. To run the cases that it can pass, and to load it by hand:\n\n  \
         {program} test --nic {}\n  \
         {program} exec --bare -- sh -c 'insmod {} && ip -br link'\n\n\
         What comes next: Documentation/porting.md",
        source.display(),
        nic.display(),
        nic.display(),
        project
            .target
            .join("nobounce/module")
            .join(format!("{name}.ko"))
            .display(),
        program = program::name(),
    );
    Ok(())
}

fn filled_in(skeleton: &str, options: &Options) -> String {
    skeleton
        .replace("@NAME@", &options.name)
        .replace("@AUTHOR@", &options.author)
        .replace("@VENDOR@", &options.vendor)
        .replace("@DEVICE@", &options.device)
}

/// The description of its NIC for the cases.
fn description(options: &Options) -> String {
    let (name, device) = (&options.name, &options.qemu_device);
    format!(
        "# SPDX-License-Identifier: GPL-2.0\n#\n\
         # The NIC of {name}. See Documentation/porting.md, Describe it to the tests.\n\n\
         name = \"{name}\"\nload = [\"{name}\"]\ndevice = \"{device}\"\nmax-mtu = 1500\n\
         # Once frames pass: \"traffic\". harness/cases/src/nic.rs has the other words.\n\
         can = []\n"
    )
}

/// A module's name is a crate's, too.
fn check_name(name: &str) -> Result<()> {
    let mut letters = name.chars();
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !letters.next().is_some_and(|c| c.is_ascii_lowercase()) || !letters.all(good) {
        bail!("`{name}` can't name a module: use a to z, 0 to 9 and _");
    }
    Ok(())
}

fn vendor(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    match !text.is_empty() && text.chars().all(good) {
        true => Ok(text.to_owned()),
        false => Err("the kernel's names of vendors are in capitals".to_owned()),
    }
}

fn device(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u16::from_str_radix(digits, 16)
        .map(|id| format!("{id:#06x}"))
        .map_err(|_| "a device ID has four hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_name_no_module_is_refused() {
        for name in ["", "9nic", "my-nic", "MyNic", "a/b", "_x"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        check_name("my_nic2").unwrap();
    }

    #[test]
    fn a_device_is_four_hexadecimal_digits() {
        assert_eq!(device("10d3").as_deref(), Ok("0x10d3"));
        assert_eq!(device("0x10D3").as_deref(), Ok("0x10d3"));
        assert!(device("igb").is_err() && device("10d30").is_err());
    }
}
