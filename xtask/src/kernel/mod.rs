// SPDX-License-Identifier: MIT OR Apache-2.0

//! The guest's kernel: where its source comes from, how it is configured and
//! built, and whether a user's own tree has what is needed.

mod build;
mod config;
mod flavour;
mod progress;
mod source;
mod toolchain;
mod tree;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use crate::project::Project;

use self::toolchain::Toolchain;

pub(crate) use flavour::Flavour;
pub(crate) use source::fetch;
pub(crate) use tree::make;

/// Which kernel to use. Without either: Linux 7.3 from Debian's package
/// linux-source-7.3, built in the cache.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KernelArgs {
    /// A kernel tree of your own: a source tree without a .config is built in
    /// the cache with nobounce's configuration; one with a .config is used as
    /// it is and never configured or built
    #[arg(long, env = "KDIR", value_name = "TREE", global = true)]
    pub(crate) kdir: Option<PathBuf>,
    /// The output folder (O=) of a kernel that you built yourself: used as it
    /// is and never configured or built
    #[arg(long, env = "KBUILD_OUTPUT", value_name = "FOLDER", global = true)]
    pub(crate) kbuild_output: Option<PathBuf>,
    /// Take the debug kernel: the same source, built by clang with KASAN,
    /// lockdep, kmemleak and others (qemu/kernel/debug.config); what is made
    /// for it is in target/nobounce/debug
    #[arg(long, global = true)]
    pub(crate) debug: bool,
    /// Take the lab's kernel: the same source, with what the kernel's own driver
    /// selftests and users' programs use (qemu/kernel/lab.config); what is made
    /// for it is in target/nobounce/lab
    #[arg(long, global = true, conflicts_with = "debug")]
    pub(crate) lab: bool,
    /// Take the same kernel built by clang, with the kernel's C helpers inlined
    /// into Rust (qemu/kernel/clang.config); what is made for it is in
    /// target/nobounce/clang
    #[arg(long, global = true, conflicts_with_all = ["debug", "lab"])]
    pub(crate) clang: bool,
    /// One of several kernels, which has a folder of its own in target/nobounce.
    #[arg(skip)]
    pub(crate) of_several: Option<OfSeveral>,
}

/// One of the kernels of `test --kernel`.
#[derive(Debug, Clone)]
pub(crate) struct OfSeveral {
    /// What it is called.
    pub(crate) name: String,
    /// Major and minor version of a kernel whose source the distribution has, instead of a tree.
    pub(crate) version: Option<String>,
}

impl KernelArgs {
    /// Which of the kernels that are built of one source.
    pub(crate) fn flavour(&self) -> Flavour {
        match (self.debug, self.lab, self.clang) {
            (true, ..) => Flavour::Debug,
            (_, true, _) => Flavour::Lab,
            (.., true) => Flavour::Clang,
            _ => Flavour::Plain,
        }
    }

    /// The folder, in `target/nobounce`, of what is made for it: modules of one kernel don't suit
    /// another.
    pub(crate) fn folder(&self) -> PathBuf {
        match &self.of_several {
            Some(kernel) => Path::new("kernels").join(&kernel.name),
            None => self.flavour().folder().into(),
        }
    }
}

/// A kernel that modules can be built against.
pub(crate) struct Kernel {
    /// The build folder: `make -C` for modules.
    pub(crate) build: PathBuf,
    /// The source tree, with `.rustfmt.toml`.
    pub(crate) source: PathBuf,
    /// `uname -r` of it.
    pub(crate) release: String,
    /// Its `.config`.
    pub(crate) config: config::Config,
    /// What it was built with, and modules for it are.
    toolchain: Toolchain,
}

/// What a kernel is wanted for; a kernel to boot must have more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Building `rigb.ko`.
    Module,
    /// Booting it under QEMU as well.
    Guest,
}

/// Whether the user's kernel is built already, so that none of ours can be built of its source.
///
/// # Errors
///
/// When there is no kernel where the user says.
pub(crate) fn is_built(project: &Project) -> Result<bool> {
    Ok(matches!(
        tree::find(&project.kernel)?,
        tree::Found::Built(_)
    ))
}

/// Whether the kernel is built already, by the user or in the cache.
///
/// # Errors
///
/// When there is no kernel where the user says, or a tool is missing.
pub(crate) fn is_ready(project: &Project) -> Result<bool> {
    match tree::find(&project.kernel)? {
        tree::Found::Built(_) => Ok(true),
        // make looks at it every time.
        tree::Found::Source(_) => Ok(false),
        tree::Found::None => {
            let source = source::fetch(project)?;
            build::is_cached(project, &source.dir, &source.version)
        }
    }
}

/// Finds or builds the kernel.
///
/// # Errors
///
/// What is missing, with the way out: see the messages of `tree` and `build`.
pub(crate) fn prepare(project: &Project, wanted: Use) -> Result<Kernel> {
    match tree::find(&project.kernel)? {
        tree::Found::Built(build) => match project.kernel.flavour().option() {
            Some(option) => bail!(
                "{option} builds a kernel with nobounce's configuration, and {} is built already: \
                 use it without {option}, or set KDIR alone to a source tree without a .config",
                build.display()
            ),
            None => tree::open(project, &build, wanted),
        },
        tree::Found::Source(source) => build::build(project, &source, None),
        tree::Found::None => {
            let source = source::fetch(project)?;
            tree::check_source(&source.version, &source.dir)?;
            build::build(project, &source.dir, Some(&source.version))
        }
    }
}
