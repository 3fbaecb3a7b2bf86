// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which functions did it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use fs_err as fs;
use protocol::{kernel::Symbol, measure::MeasuredSinkReport};
use vm::counter::{Counts, Window};

/// Addresses below are the program's.
const KERNEL: u64 = 1 << 63;
/// What the program itself did.
const PROGRAM: &str = "(program)";

/// A function and its counts.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Its module; `None` for the kernel and the program.
    pub(crate) module: Option<String>,
    pub(crate) counts: Counts,
    /// How often it was called: entered at its first instruction.
    pub(crate) calls: u64,
}

impl Function {
    /// Whether this stands for all of the program.
    pub(crate) fn is_program(&self) -> bool {
        self.name == PROGRAM
    }
}

/// The functions of a kernel and its modules by address.
pub(crate) struct Symbols {
    by_address: BTreeMap<u64, (String, Option<String>)>,
}

impl Symbols {
    /// Reads a `System.map`, and takes the modules' functions.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(crate) fn new(system_map: &Path, modules: &[Symbol]) -> Result<Self> {
        let text = fs::read_to_string(system_map)?;
        let mut by_address = BTreeMap::new();
        for (address, name) in text.lines().filter_map(kernel_function) {
            // Of several names the last is as good as any.
            by_address.insert(address, (demangled(name), None));
        }
        for symbol in modules {
            let value = (demangled(&symbol.name), symbol.module.clone());
            by_address.insert(symbol.address, value);
        }
        Ok(Self { by_address })
    }

    /// Fails unless there are functions with these names.
    ///
    /// # Errors
    ///
    /// Names the one that is missing.
    pub(crate) fn require(&self, names: &[&str]) -> Result<()> {
        for name in names {
            let found = self.by_address.values().any(|(known, _)| known == name);
            ensure!(
                found,
                "this kernel has no function {name}: what it does must be counted otherwise"
            );
        }
        Ok(())
    }

    /// What each function did, the busiest first.
    pub(crate) fn profile(&self, window: &Window) -> Vec<Function> {
        let mut functions: BTreeMap<u64, Function> = BTreeMap::new();
        for block in &window.blocks {
            let found = self.by_address.range(..=block.address).next_back();
            let (start, name, module) = match found {
                Some((&start, (name, module))) if block.address >= KERNEL => {
                    (start, name.as_str(), module.clone())
                }
                _ => (0, PROGRAM, None),
            };
            let function = functions.entry(start).or_insert_with(|| Function {
                name: name.to_owned(),
                module,
                counts: Counts::default(),
                calls: 0,
            });
            function.counts += block.counts;
            if block.address == start {
                function.calls += block.entries;
            }
        }
        let mut functions: Vec<_> = functions.into_values().collect();
        functions.sort_by_key(|function| {
            std::cmp::Reverse(function.counts.instructions + function.counts.reps)
        });
        functions
    }
}

/// `address type name` of a function.
fn kernel_function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let function = matches!(words.next()?, "t" | "T" | "w" | "W");
    let name = words.next()?;
    // Markers between functions are not functions.
    (function && address >= KERNEL && !name.starts_with("__pfx_")).then_some((address, name))
}

/// A function's name as the source has it.
pub(crate) fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// A profile as text: a line for each function that did at least this share of the work.
pub(crate) fn text(
    title: &str,
    functions: &[Function],
    sink: &MeasuredSinkReport,
    least: f64,
    part: impl Fn(&Function) -> &'static str,
) -> String {
    let (bytes, packets) = (sink.window_bytes, sink.window_packets);
    let mut text = format!(
        "{title}\n{bytes} payload bytes, {packets} packets received\n\n\
         {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}  {:>9}  function\n",
        "insn/kB", "insn/pkt", "rep/kB", "loaded/B", "stored/B", "calls/pkt", "calls"
    );
    let total = sum(functions);
    let mut line = |name: &str, counts: &Counts, calls: u64| {
        let per_byte = |value: u64| value as f64 / bytes as f64;
        text.push_str(&format!(
            "{:>9.2} {:>9.1} {:>8.2} {:>8.4} {:>8.4} {:>8.2}  {calls:>9}  {name}\n",
            per_byte(counts.instructions) * 1000.0,
            counts.instructions as f64 / packets.max(1) as f64,
            per_byte(counts.reps) * 1000.0,
            per_byte(counts.accesses.loaded),
            per_byte(counts.accesses.stored),
            calls as f64 / packets.max(1) as f64,
        ));
    };
    line("(all)", &total, 0);
    for function in functions {
        let work = function.counts.instructions + function.counts.reps;
        if (work as f64) < least * (total.instructions + total.reps) as f64 {
            break;
        }
        let name = match &function.module {
            Some(module) => format!("{} [{module}]", function.name),
            None => format!("{} ({})", function.name, part(function)),
        };
        line(&name, &function.counts, function.calls);
    }
    text
}

/// What functions did together.
pub(crate) fn sum<'a>(functions: impl IntoIterator<Item = &'a Function>) -> Counts {
    let mut total = Counts::default();
    for function in functions {
        total += function.counts;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_is_counted_must_be_there() {
        let symbols = Symbols {
            by_address: BTreeMap::from([(KERNEL, ("there".to_owned(), None))]),
        };
        assert!(symbols.require(&["there"]).is_ok());
        assert!(symbols.require(&["there", "gone"]).is_err());
    }

    #[test]
    fn only_functions_of_the_kernel_are_taken_from_a_system_map() {
        assert_eq!(
            kernel_function("ffffffff81000000 T _text"),
            Some((0xffff_ffff_8100_0000, "_text"))
        );
        assert_eq!(kernel_function("ffffffff82000000 D jiffies"), None);
        assert_eq!(kernel_function("0000000000000000 A __per_cpu_start"), None);
        assert_eq!(kernel_function("ffffffff81000010 t __pfx_f"), None);
    }
}
