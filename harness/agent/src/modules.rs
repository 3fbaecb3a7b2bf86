// SPDX-License-Identifier: MIT OR Apache-2.0

//! Kernel modules.

use std::{ffi::CString, fs::File};

use anyhow::{Context, Result};
use protocol::net::Module;
use rustix::system::{delete_module, finit_module};

use crate::files;

/// Loads `/lib/modules/<name>.ko`.
pub(crate) fn load(name: &str, parameters: &str) -> Result<()> {
    let path = format!("/lib/modules/{name}.ko");
    let file = File::open(&path).with_context(|| format!("opening {path}"))?;
    let parameters = CString::new(parameters).context("a NUL byte in the parameters")?;
    finit_module(&file, &parameters, 0).with_context(|| format!("loading {path}"))
}

/// Unloads a module; fails when it is in use.
pub(crate) fn unload(name: &str) -> Result<()> {
    let name = CString::new(name.replace('-', "_")).context("a NUL byte in the name")?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    delete_module(&name, flags).with_context(|| format!("unloading {}", name.to_string_lossy()))
}

/// All loaded modules.
pub(crate) fn list() -> Result<Vec<Module>> {
    files::read("/proc/modules")?
        .lines()
        .map(|line| parse(line).with_context(|| format!("a strange line in /proc/modules: {line}")))
        .collect()
}

/// A line is `name size references users state address`.
fn parse(line: &str) -> Option<Module> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    // `-` stands for a kernel that does not count.
    let references = words.nth(1)?.parse().unwrap_or_default();
    Some(Module { name, references })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_modules_gives_name_and_references() {
        let line = "i2c_core 32768 2 igb,i2c_algo_bit, Live 0x0000000000000000";
        let module = Module {
            name: "i2c_core".to_owned(),
            references: 2,
        };
        assert_eq!(parse(line), Some(module));
        assert_eq!(parse("i2c_core"), None);
    }
}
