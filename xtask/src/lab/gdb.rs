// SPDX-License-Identifier: MIT OR Apache-2.0

//! A debugger for the guest's kernel: gdb, by QEMU's stub.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use cases::Options;
use fs_err as fs;
use vm::Images;

use super::running::Running;

/// For a guest that stands still at a breakpoint, in place of every limit.
const AS_LONG_AS_IT_TAKES: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What gdb does first. The kernel's scripts need memory that the kernel has mapped, and look for
/// modules in the working directory, too.
const SCRIPT: &str = "\
set auto-load python-scripts off
file BUILD/vmlinux
target remote SOCKET
thbreak start_kernel
continue
cd MODULES
source BUILD/vmlinux-gdb.py
lx-symbols MODULES BUILD SYMBOLS
";

/// Has the guest wait for gdb before its first instruction, and says how to start it.
/// Modules of the user's are in the folders `symbols`.
pub(super) fn attach(
    options: Options,
    images: &Images,
    running: &Running,
    symbols: &[PathBuf],
) -> Result<Options> {
    let build = images.symbols.as_deref().and_then(Path::parent);
    let Some(build) = build.filter(|build| build.join("vmlinux").is_file()) else {
        bail!(
            "--gdb: the folder that this kernel was built in has no vmlinux, or no System.map: build \
             it there, or use nobounce's own kernel"
        );
    };
    if !build.join("vmlinux-gdb.py").exists() {
        bail!(
            "--gdb: {} has no vmlinux-gdb.py: build the kernel with CONFIG_GDB_SCRIPTS, and run \
             `make scripts_gdb` there",
            build.display()
        );
    }
    let modules = images.modules.first().and_then(|module| module.parent());
    let modules = modules.unwrap_or(build);
    let socket = running.path("gdb.sock");
    let symbols: Vec<_> = symbols.iter().map(|dir| dir.to_string_lossy()).collect();
    let text = SCRIPT
        .replace("SYMBOLS", &symbols.join(" "))
        .replace("BUILD", &build.to_string_lossy())
        .replace("MODULES", &modules.to_string_lossy())
        .replace("SOCKET", &socket.to_string_lossy());
    let script = running.path("gdb");
    fs::write(&script, text)?;
    eprintln!(
        "{}: it waits for gdb: gdb -x {}",
        running.name(),
        script.display()
    );
    let stub = format!(
        "unix:{},server=on,wait=off",
        socket.to_string_lossy().replace(',', ",,")
    );
    Ok(wait(options.machine(|machine| {
        machine
            .qemu_argument("-gdb")
            .qemu_argument(&stub)
            .qemu_argument("-S")
            .kernel_parameter("nokaslr")
    })))
}

/// Has nothing end while the guest, or that at the other end of its wire, stands still.
pub(super) fn wait(options: Options) -> Options {
    options.machine(|machine| machine.call_timeout(AS_LONG_AS_IT_TAKES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_ends_a_guest_that_waits_for_gdb() {
        let limit = format!("call_timeout: {AS_LONG_AS_IT_TAKES:?}");
        let [before, after] = [Options::default(), wait(Options::default())];
        assert!(!format!("{before:?}").contains(&limit), "{before:?}");
        assert!(format!("{after:?}").contains(&limit), "{after:?}");
    }
}
