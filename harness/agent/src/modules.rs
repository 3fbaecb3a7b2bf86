// SPDX-License-Identifier: MIT OR Apache-2.0

//! Kernel modules.

use std::{
    ffi::CString,
    fs::File,
    io::{BufRead, BufReader},
};

use anyhow::{Context, Result};
use protocol::kernel::{ListFunctions, Module, Symbol};
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
        .map(|line| parse(line).with_context(|| format!("bad line in /proc/modules: {line}")))
        .collect()
}

/// The functions that are asked for.
pub(crate) fn functions(wanted: &ListFunctions) -> Result<Vec<Symbol>> {
    let path = "/proc/kallsyms";
    let lines = BufReader::new(File::open(path).with_context(|| format!("opening {path}"))?);
    let mut symbols = Vec::new();
    for line in lines.lines() {
        let line = line.with_context(|| format!("reading {path}"))?;
        symbols.extend(function(&line).filter(|function| is_wanted(function, wanted)));
    }
    Ok(symbols)
}

/// A line is `address type name`, followed by `[module]` for a module's symbol. Types `t` and `T`
/// are functions.
fn function(line: &str) -> Option<Symbol> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let function = words.next()?.eq_ignore_ascii_case("t");
    let name = words.next()?.to_owned();
    let module = words.next().map(|word| word.trim_matches(['[', ']']));
    function.then(|| Symbol {
        address,
        name,
        module: module.map(str::to_owned),
    })
}

fn is_wanted(function: &Symbol, wanted: &ListFunctions) -> bool {
    let prefix = wanted.of_kernel.as_deref();
    function.module.is_some() || prefix.is_some_and(|prefix| function.name.starts_with(prefix))
}

/// A line is `name size references users state address`.
fn parse(line: &str) -> Option<Module> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    // `-` means that the kernel does not count references.
    let references = words.nth(1)?.parse().unwrap_or_default();
    Some(Module { name, references })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_kallsyms_the_functions_of_modules_are_taken_and_those_of_the_kernel_that_are_wanted() {
        let line = "ffffffffc0001000 t igb_poll\t[igb]";
        let expected = Symbol {
            address: 0xffff_ffff_c000_1000,
            name: "igb_poll".to_owned(),
            module: Some("igb".to_owned()),
        };
        assert_eq!(function(line), Some(expected));
        assert_eq!(function("ffffffffc0001000 d igb_data\t[igb]"), None);

        let wanted = |line: &str, prefix: Option<&str>| {
            let of_kernel = prefix.map(str::to_owned);
            is_wanted(&function(line).unwrap(), &ListFunctions { of_kernel })
        };
        assert!(wanted(line, None) && wanted(line, Some("debug_")));
        let line = "ffffffff81000000 T debug_dma_map_sg";
        assert!(wanted(line, Some("debug_")) && !wanted(line, Some("dma_")));
        assert!(!wanted(line, None));
    }

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
