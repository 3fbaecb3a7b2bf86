// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which kernel is asked for.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use super::flavour::Flavour;

/// Which kernel to use. Without either: Linux 7.3 from Debian's package
/// linux-source-7.3, built in the cache.
#[derive(Debug, Clone, Default, Args)]
pub struct KernelArgs {
    /// A kernel tree of your own: a source tree without a .config is built in
    /// the cache with nobounce's configuration; one with a .config is used as
    /// it is and never configured or built
    #[arg(long, env = "KDIR", value_name = "TREE", global = true)]
    pub kdir: Option<PathBuf>,
    /// The output folder (O=) of a kernel that you built yourself: used as it
    /// is and never configured or built
    #[arg(long, env = "KBUILD_OUTPUT", value_name = "FOLDER", global = true)]
    pub kbuild_output: Option<PathBuf>,
    /// Take the debug kernel: the same source, built by clang with KASAN,
    /// lockdep, kmemleak and others (qemu/kernel/debug.config); what is made
    /// for it is in target/nobounce/debug
    #[arg(long, global = true)]
    pub debug: bool,
    /// Take the lean kernel, as `bench` does: the same source, without what only
    /// the kernel's own driver selftests and users' programs use
    /// (qemu/kernel/lab.config); what is made for it is in target/nobounce/lean
    #[arg(long, global = true, conflicts_with = "debug")]
    pub lean: bool,
    /// Take the lean kernel built by clang, with the kernel's C helpers inlined
    /// into Rust (qemu/kernel/clang.config); what is made for it is in
    /// target/nobounce/clang
    #[arg(long, global = true, conflicts_with_all = ["debug", "lean"])]
    pub clang: bool,
    /// One of several kernels, which has a folder of its own in target/nobounce.
    #[arg(skip)]
    pub of_several: Option<OfSeveral>,
}

/// One of the kernels of `test --kernel`.
#[derive(Debug, Clone)]
pub struct OfSeveral {
    /// What it is called.
    pub name: String,
    /// Major and minor version of a kernel whose source the distribution has, instead of a tree.
    pub version: Option<String>,
}

impl KernelArgs {
    /// Which of the kernels that are built of one source.
    pub fn flavour(&self) -> Flavour {
        match (self.debug, self.lean, self.clang) {
            (true, ..) => Flavour::Debug,
            (_, true, _) => Flavour::Lean,
            (.., true) => Flavour::Clang,
            _ => Flavour::Plain,
        }
    }

    /// Checks that the kernel is one that programs and the kernel's own selftests run on.
    ///
    /// # Errors
    ///
    /// When a kernel is asked for that is built without what they use.
    pub fn for_programs(self) -> Result<Self> {
        match self.flavour().option() {
            Some(option) => bail!(
                "{option} builds a kernel without what programs use (qemu/kernel/lab.config): leave it out"
            ),
            None => Ok(self),
        }
    }

    /// The folder, in `target/nobounce`, of what is made for it: modules of one kernel don't suit
    /// another.
    pub fn folder(&self) -> PathBuf {
        match &self.of_several {
            Some(kernel) => Path::new("kernels").join(&kernel.name),
            None => self.flavour().folder().into(),
        }
    }
}
