// SPDX-License-Identifier: MIT OR Apache-2.0

//! `doctor`: what the machine has and lacks, and the way out. It changes nothing.

use std::fmt;

use anyhow::{Result, bail};
use fs_err as fs;

use crate::distribution::Distribution;
use crate::kernel::is_built;
use crate::project::Project;
use crate::{bindgen, names, packages, qemu, tools};

/// A guest of the lab, and QEMU around it.
const MEMORY_KIB: u64 = 2_930_000;
/// Everything that is ever made: sources, kernels and a root file system in the cache, the rest in the
/// checkout.
const SPACE: u64 = 13_000_000_000;

/// What was found.
enum State {
    /// It is there.
    Has,
    /// nobounce gets it when it is needed first.
    Gets,
    /// It works, but worse than it could.
    Could,
    /// Nothing works without it.
    Lacks,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Has => "has",
            Self::Gets => "gets",
            Self::Could => "could",
            Self::Lacks => "LACKS",
        })
    }
}

/// The state of something that nobounce needs or could use, and what is said about it.
type Finding = (State, String);

/// Prints what it finds.
///
/// # Errors
///
/// When something is missing that nobounce can't get.
pub(crate) fn run(project: &Project) -> Result<()> {
    let distribution = Distribution::here();
    let findings = [
        ("packages", packages(&distribution)),
        ("Rust", rust()),
        ("core library", core_library(project, &distribution)),
        ("bindgen", bindgen(project, &distribution)),
        ("cargo-nextest", nextest(project)),
        ("QEMU", qemu(project, &distribution)),
        ("kernel", kernel(project, &distribution)),
        ("recipes", recipes(&distribution)),
        ("KVM", kvm()),
        ("memory", memory()),
        ("disk", space(project)),
    ];
    let mut lacks = 0;
    for (what, (state, text)) in &findings {
        println!("{state:6} {what:16} {text}");
        lacks += u32::from(matches!(state, State::Lacks));
    }
    if lacks != 0 {
        let text = format!("{lacks} of these must be fixed first");
        bail!("{}", distribution.with_container(text));
    }
    Ok(())
}

fn packages(distribution: &Distribution) -> Finding {
    let missing = packages::Missing::find();
    if missing.is_empty() {
        (State::Has, "compiler, libraries and tools".to_owned())
    } else if packages::may_install(distribution) {
        (State::Gets, "some, with apt-get".to_owned())
    } else {
        (State::Lacks, missing.way_out(distribution))
    }
}

fn recipes(distribution: &Distribution) -> Finding {
    let missing = packages::Missing::find_of_recipes();
    if missing.is_empty() {
        let text = "all that Documentation/recipes.md and its tests run".to_owned();
        return (State::Has, text);
    }
    let command = missing.command(distribution).unwrap_or_default();
    let text = format!("some of Documentation/recipes.md run more: {command}");
    (State::Could, text)
}

/// The command that installs a package, in parentheses.
fn command(names: names::Names, distribution: &Distribution, what_for: &str) -> String {
    names::command(&[names], distribution)
        .map_or_else(String::new, |command| format!(" (`{command}`{what_for})"))
}

fn rust() -> Finding {
    match tools::rustc() {
        Ok(rustc) => (State::Has, rustc.text),
        Err(error) => (State::Lacks, format!("{error:#}")),
    }
}

fn core_library(project: &Project, distribution: &Distribution) -> Finding {
    const COMPONENT: &str = "`rustup component add rust-src`";
    match (tools::find_rust_lib_src(project), &distribution.debian) {
        (Ok(Some(_)), _) => (State::Has, String::new()),
        (Ok(None), Some(_)) => {
            let text = format!("its source: Debian's package, or {COMPONENT}");
            (State::Gets, text)
        }
        (Ok(None), None) => {
            let what_for = " for the distribution's Rust";
            let own = command(names::RUST_SRC, distribution, what_for);
            let text = format!("its source: {COMPONENT}{own}, or name it by RUST_LIB_SRC=");
            (State::Lacks, text)
        }
        (Err(error), _) => (State::Lacks, format!("{error:#}")),
    }
}

fn bindgen(project: &Project, distribution: &Distribution) -> Finding {
    if bindgen::find(project).is_some() {
        (State::Has, String::new())
    } else if distribution.debian.is_some() {
        (State::Gets, "Debian's newest, into the cache".to_owned())
    } else {
        (State::Lacks, bindgen::wanted())
    }
}

fn nextest(project: &Project) -> Finding {
    let (state, text) = match tools::find_nextest(project) {
        Some(_) => (State::Has, ""),
        None => (State::Gets, "with cargo install, into the cache"),
    };
    (state, text.to_owned())
}

fn qemu(project: &Project, distribution: &Distribution) -> Finding {
    match qemu::find(project) {
        Ok(Some(qemu)) => {
            let program = qemu::program(&qemu);
            let text = format!("{}, {}", qemu.version, program.display());
            (State::Has, text)
        }
        Ok(None) if distribution.debian.is_some() => {
            (State::Gets, "Debian's newest, into the cache".to_owned())
        }
        Ok(None) => {
            let own = command(names::QEMU, distribution, "");
            let text = format!("10.1 or newer with igb on PATH{own}, or named by QEMU=");
            (State::Lacks, text)
        }
        Err(error) => (State::Lacks, format!("{error:#}")),
    }
}

fn kernel(project: &Project, distribution: &Distribution) -> Finding {
    match is_built(project) {
        Ok(true) => (State::Has, "yours, by KDIR or KBUILD_OUTPUT".to_owned()),
        Ok(false) if project.cache.path("source").is_dir() || distribution.debian.is_some() => {
            let built = project.cache.list("kernel").len();
            let text = format!(
                "Linux 7.3 from Debian's source: {built} built in the cache; each takes 5 to 25 minutes, once"
            );
            let state = if built == 0 { State::Gets } else { State::Has };
            (state, text)
        }
        Ok(false) => (
            State::Lacks,
            "no Debian mirror to get the source from: name a tree of Linux 7.3 or newer by KDIR="
                .to_owned(),
        ),
        Err(error) => (State::Lacks, format!("{error:#}")),
    }
}

fn kvm() -> Finding {
    if vm::kvm_works() {
        return (State::Has, String::new());
    }
    let text = match fs::File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => "the processor has no virtualisation extensions: guests are emulated, which is enough".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            "guests are emulated: `sudo usermod -aG kvm $USER`, then log in again, makes them faster".to_owned()
        }
        Err(error) => format!("{error}; guests are emulated, which is enough"),
    };
    (State::Could, text)
}

fn memory() -> Finding {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = available_kib(&text).unwrap_or(u64::MAX);
    let state = if available < MEMORY_KIB {
        State::Lacks
    } else {
        State::Has
    };
    let text = format!(
        "{} MiB of memory available, {} needed (`exec --memory` takes less)",
        available / 1024,
        MEMORY_KIB / 1024
    );
    (state, text)
}

/// `MemAvailable` of a /proc/meminfo.
fn available_kib(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn space(project: &Project) -> Finding {
    match project.cache.require_space(SPACE, "everything") {
        Ok(()) => (State::Has, project.cache.dir().display().to_string()),
        // Most of it may be there already.
        Err(error) => (State::Could, format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_meminfo() {
        let text = "MemTotal:  16 kB\nMemAvailable:    9123456 kB\n";
        assert_eq!(available_kib(text), Some(9_123_456));
        assert_eq!(available_kib("MemTotal: 1 kB\n"), None);
    }
}
