// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the end-to-end cases share: two NICs on one wire, and transfers that are verified.
//!
//! A case boots a [`Testbed`], makes something happen and ends with [`Testbed::finish`], which
//! fails if the kernel complained; a case that forgets to call it panics. The cases are in
//! `tests/`, one file per feature.

mod accelerator;
mod bare;
mod both_ways;
mod capture;
mod counts;
mod datagrams;
mod error;
mod exchange;
mod files;
mod frame;
pub mod hostile;
mod kernel_fault;
mod nic;
mod options;
mod power;
mod queues;
mod recipes;
mod rss;
mod settings;
mod skip;
mod station;
mod surprise;
pub mod symbols;
mod testbed;
mod timestamps;
mod transfer;
mod unfinished;
mod zcrx;

pub use accelerator::{ACCELERATOR, place};
pub use bare::BareDevice;
pub use both_ways::BothWays;
pub use capture::{Captured, captured};
pub use datagrams::Datagrams;
pub use error::{
    CaseError, Refusal, Result, assert_fails_saying, assert_refused, assert_refused_saying,
};
pub use exchange::{EXPERIMENTAL, ethernet};
pub use frame::Frame;
pub use kernel_fault::KernelFault;
pub use nic::{Ability, NIC_ENV, Nic, RingSizes};
pub use options::{ACCELERATOR_MIB, Driver, Options};
pub use skip::SKIPPED_ENV;
pub use station::{Family, Station};
pub use surprise::PulledOut;
pub use testbed::{PATIENCE_MS, PORTS, Testbed};
pub use transfer::{Received, Sent, Stream, finish};
pub use zcrx::{ReceivedByRing, assert_whole};

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    /// Documentation/models.md says of each file on which model its cases run.
    #[test]
    fn the_documentation_names_each_file_of_cases() {
        let text = include_str!("../../../Documentation/models.md");
        let start = text.find("## Which model `make test` takes").unwrap();
        let end = text.find("## Next to QEMU's model").unwrap();
        let section = &text[start..end];
        // Not as it was when this was built: the checkout may have been moved.
        let package = env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let tests = Path::new(&package).join("tests");
        for file in fs::read_dir(tests).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let [row, word] = [format!("\n| `{name}`"), format!("`{name}` ")];
            let is_apart = ["engine", "rtest", "rwire", "snapshots"].contains(&name);
            let is_named = section.contains(&row) || is_apart && section.contains(&word);
            assert!(is_named, "{name}");
        }
    }
}
