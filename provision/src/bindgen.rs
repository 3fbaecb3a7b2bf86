// SPDX-License-Identifier: MIT OR Apache-2.0

//! bindgen, which makes the kernel's bindings and ours, with the libclang that it parses C with: the
//! user's, or Debian's packages, unpacked in the cache and run through their own loader.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::apt::Apt;
use crate::cmd::Cmd;
use crate::llvm;
use crate::project::Project;
use crate::tools;
use crate::unpacked::{Packages, write_script};
use crate::version::Version;

/// The kernel takes 0.71.1, too, which does not understand libclang 22
/// (`scripts/rust_is_available.sh`).
const MIN_BINDGEN: Version = Version::new(0, 72, 1);
/// What the kernel asks for (`scripts/min-tool-version.sh`).
const MIN_LIBCLANG: u32 = 17;

/// Debian's packages: 45 MB, and what they unpack to. bindgen's depends on libclang's headers, which
/// are not needed here.
const PACKAGES: Packages = Packages {
    what: "bindgen",
    folder: "bindgen",
    suites: Apt::forky,
    names: &[llvm::LIBCLANG],
    alone: Some("bindgen"),
    version: "",
    space: 300_000_000,
    not_needed: &[
        "etc",
        "usr/lib/x86_64-linux-gnu/gconv",
        "usr/libexec",
        "usr/share",
        "var",
    ],
};
/// Debian's program, and the script that runs it.
const PROGRAM: &str = "usr/bin/bindgen";
const SCRIPT: &str = "bin/bindgen";

/// A bindgen that runs.
pub struct Bindgen {
    /// What to run.
    pub command: PathBuf,
    /// The program itself, for callers with a libclang and a loader of their own.
    pub program: PathBuf,
    /// The folder of its libclang, for `LIBCLANG_PATH`, unless it finds that by itself.
    pub libclang: Option<PathBuf>,
}

impl Bindgen {
    /// Debian's, in a folder of the cache.
    fn unpacked(root: &Path) -> Self {
        Self {
            command: root.join(SCRIPT),
            program: root.join(PROGRAM),
            libclang: None,
        }
    }

    /// Its version, as it says it.
    ///
    /// # Errors
    ///
    /// When it doesn't run.
    pub fn version(&self) -> Result<String> {
        Cmd::new(&self.command).arg("--version").output()
    }
}

/// The bindgen to use; Debian's is unpacked on first use.
///
/// # Errors
///
/// No apt, no network, no space: see [`Packages::get`].
pub fn prepare(project: &Project) -> Result<Bindgen> {
    if let Some(users) = users() {
        return Ok(users);
    }
    let root = PACKAGES.get(project, "", |work| {
        let llvm = format!("$root/usr/lib/llvm-{}/lib", llvm::MAJOR);
        let prepare = format!("export LIBCLANG_PATH=\"{llvm}\"\n");
        write_script(&work.join(SCRIPT), PROGRAM, &prepare, &format!("{llvm}:"))
    })?;
    Ok(Bindgen::unpacked(&root))
}

/// The bindgen that is there.
pub fn find(project: &Project) -> Option<Bindgen> {
    let unpacked = || PACKAGES.find(&project.cache, "");
    users().or_else(|| Some(Bindgen::unpacked(&unpacked()?)))
}

/// What there must be where none can be unpacked.
pub fn wanted() -> String {
    format!(
        "bindgen {MIN_BINDGEN} or newer with libclang {MIN_LIBCLANG} or newer (where the package is \
         older: `cargo install --locked bindgen-cli`, LIBCLANG_PATH=)"
    )
}

/// The user's, if it and a libclang are new enough.
pub fn users() -> Option<Bindgen> {
    let program = tools::users("bindgen", &["--version"], MIN_BINDGEN)?;
    Some(Bindgen {
        command: program.clone(),
        program,
        libclang: Some(libclang()?),
    })
}

/// The folder with the user's libclang: what `LIBCLANG_PATH` says, else that of the newest. (bindgen's
/// own search may take an older one.)
fn libclang() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("LIBCLANG_PATH") {
        return Some(path.into());
    }
    let versions = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let versions = versions.filter_map(|entry| {
        let name = entry.file_name();
        let major: u32 = name.to_str()?.strip_prefix("llvm-")?.parse().ok()?;
        let lib = entry.path().join("lib");
        (major >= MIN_LIBCLANG && has_libclang(&lib)).then_some((major, lib))
    });
    // Other distributions put the only one, versioned in its name, in the library folder.
    let only = || ["/usr/lib64", "/usr/lib"].map(PathBuf::from).into_iter();
    versions
        .max()
        .map(|(_, lib)| lib)
        .or_else(|| only().find(|lib| has_libclang(lib)))
}

fn has_libclang(lib: &Path) -> bool {
    let entries = fs::read_dir(lib).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| {
        let name = name.to_string_lossy();
        (name.starts_with("libclang.so") || name.starts_with("libclang-"))
            && name.contains(".so")
            && !name.starts_with("libclang-cpp")
    })
}
