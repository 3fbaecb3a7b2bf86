// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is needed of the machine, how to see that it is there, and which packages have it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use crate::bindgen;
use crate::cmd::on_path;
use crate::distribution::Distribution;
use crate::names::Names;

/// How to see that a package isn't needed.
enum Probe {
    /// A program on PATH.
    Program(&'static str),
    /// A header file.
    Header(&'static str),
    /// A library to link statically with, in whatever folder libraries are in.
    Archive(&'static str),
    /// A package of the distribution's Python.
    Python(&'static str),
    /// bindgen with libclang.
    Bindgen,
}

/// Something that is needed, and each manager's package that has it.
pub(super) struct Need {
    probe: Probe,
    pub(super) names: Names,
}

/// For lists.
const fn need(probe: Probe, names: Names) -> Need {
    Need { probe, names }
}

/// What a kernel build with Rust, a static guest binary and the recipes need.
pub(super) const NEEDED: &[Need] = &[
    need(Probe::Program("gcc"), ["gcc"; 4]),
    need(
        Probe::Header("/usr/include/stdio.h"),
        ["libc6-dev", "glibc-devel", "glibc", "glibc-devel"],
    ),
    need(
        Probe::Archive("libc.a"),
        ["libc6-dev", "glibc-static", "glibc", "glibc-devel-static"],
    ),
    need(Probe::Program("make"), ["make"; 4]),
    need(Probe::Program("flex"), ["flex"; 4]),
    need(Probe::Program("bison"), ["bison"; 4]),
    need(Probe::Program("bc"), ["bc"; 4]),
    need(Probe::Program("xz"), ["xz-utils", "xz", "xz", "xz"]),
    need(
        Probe::Program("python3"),
        ["python3", "python3", "python", "python3"],
    ),
    need(
        Probe::Header("/usr/include/libelf.h"),
        [
            "libelf-dev",
            "elfutils-libelf-devel",
            "libelf",
            "libelf-devel",
        ],
    ),
    need(
        Probe::Header("/usr/include/openssl/opensslv.h"),
        ["libssl-dev", "openssl-devel", "openssl", "libopenssl-devel"],
    ),
    // On Debian they are unpacked in the cache.
    need(
        Probe::Bindgen,
        [
            "",
            "bindgen-cli clang-libs",
            "rust-bindgen clang",
            "rust-bindgen libclang13",
        ],
    ),
];

/// What tests run that users of the lab may run, too.
pub(super) const NEEDED_BY_TESTS: &[Need] = &[
    need(Probe::Program("gdb"), ["gdb"; 4]),
    need(Probe::Program("kmod"), ["kmod"; 4]),
    need(Probe::Program("trace-cmd"), ["trace-cmd"; 4]),
    need(
        Probe::Program("ip"),
        ["iproute2", "iproute", "iproute2", "iproute2"],
    ),
    need(Probe::Program("curl"), ["curl"; 4]),
    need(Probe::Program("ethtool"), ["ethtool"; 4]),
    need(
        Probe::Program("iperf3"),
        ["iperf3", "iperf3", "iperf3", "iperf"],
    ),
    need(
        Probe::Program("perf"),
        ["linux-perf", "perf", "perf", "perf"],
    ),
    need(
        Probe::Python("yaml"),
        [
            "python3-yaml",
            "python3-pyyaml",
            "python-yaml",
            "python3-PyYAML",
        ],
    ),
    need(
        Probe::Python("jsonschema"),
        [
            "python3-jsonschema",
            "python3-jsonschema",
            "python-jsonschema",
            "python3-jsonschema",
        ],
    ),
];

/// Folders of libraries.
const LIBRARIES: [&str; 3] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];

impl Need {
    /// Whether it is bindgen, of which there are packages that are too old.
    pub(super) fn is_bindgen(&self) -> bool {
        matches!(self.probe, Probe::Bindgen)
    }

    /// Whether the machine has it.
    pub(super) fn is_there(&self) -> bool {
        self.probe.found()
    }
}

impl Probe {
    fn found(&self) -> bool {
        match self {
            Self::Program(name) => on_path(name),
            Self::Header(path) => Path::new(path).is_file(),
            Self::Archive(name) => LIBRARIES
                .iter()
                .any(|folder| Path::new(folder).join(name).is_file()),
            Self::Bindgen => Distribution::here().debian.is_some() || bindgen::users().is_some(),
            Self::Python(name) => python_folders().any(|folder| folder.join(name).is_dir()),
        }
    }
}

/// Folders of the distribution's Python packages: Debian has one, others have one a version.
fn python_folders() -> impl Iterator<Item = PathBuf> {
    let versions = ["/usr/lib", "/usr/lib64"]
        .into_iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten())
        .filter(|entry| entry.file_name().as_bytes().starts_with(b"python3."))
        .map(|entry| entry.path().join("site-packages"));
    iter::once("/usr/lib/python3/dist-packages".into()).chain(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_lacks_is_found_without_asking_apt() {
        assert!(Probe::Program("sh").found());
        assert!(!Probe::Program("no-such-program-here").found());
        assert!(!Probe::Header("/usr/include/no/such.h").found());
        assert!(!Probe::Archive("libno-such.a").found());
    }
}
