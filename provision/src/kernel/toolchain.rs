// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a kernel, and the modules for it, are compiled with.

use std::path::Path;

use anyhow::Result;

use super::config::Config;
use super::flavour::Flavour;
use crate::bindgen::{self, Bindgen};
use crate::cmd::Cmd;
use crate::llvm::{self, BINDGEN_ENV};
use crate::pahole;
use crate::project::Project;

/// How make is called so that it takes these tools.
pub(super) struct Toolchain {
    variables: Vec<String>,
    bindgen: Bindgen,
    /// The compiler's version, as it says it, and that of pahole.
    pub(super) compiler: String,
}

impl Toolchain {
    /// What one of our own kernels is built with.
    pub(super) fn of_flavour(project: &Project, flavour: Flavour) -> Result<Self> {
        match flavour {
            Flavour::Plain => Self::gcc(project)?.with_pahole(project),
            Flavour::Lean => Self::gcc(project),
            Flavour::Debug | Flavour::Clang => Self::clang(project),
        }
    }

    /// The machine's gcc.
    fn gcc(project: &Project) -> Result<Self> {
        let bindgen = bindgen::prepare(project)?;
        Ok(Self {
            variables: vec![format!("BINDGEN={}", bindgen.command.display())],
            bindgen,
            compiler: Cmd::new("gcc").arg("--version").output()?,
        })
    }

    /// The same, and pahole from the cache.
    fn with_pahole(mut self, project: &Project) -> Result<Self> {
        let pahole = pahole::prepare(project)?;
        let program = pahole.program.display();
        self.variables.push(format!("PAHOLE={program}"));
        self.compiler.push_str(&pahole.version);
        Ok(self)
    }

    /// clang from the cache.
    fn clang(project: &Project) -> Result<Self> {
        let llvm = llvm::prepare(project)?;
        Ok(Self {
            variables: llvm.make_variables(),
            bindgen: bindgen::prepare(project)?,
            compiler: llvm.version,
        })
    }

    /// The toolchain that a user's kernel with this configuration was built with.
    pub(super) fn of(project: &Project, config: &Config) -> Result<Self> {
        let bindgen = bindgen::prepare(project)?;
        let mut variables = vec![format!("BINDGEN={}", bindgen.command.display())];
        if config.get("CC_IS_CLANG") == "y" {
            variables.push("LLVM=1".to_owned());
        }
        Ok(Self {
            variables,
            bindgen,
            compiler: config.get("CC_VERSION_TEXT").to_owned(),
        })
    }

    /// bindgen's version, as it says it.
    pub(super) fn bindgen_version(&self) -> Result<String> {
        self.bindgen.version()
    }

    /// `make -C folder` for Kbuild: as many jobs as there are processors, and
    /// nothing of the user's environment that would change what is built.
    pub(super) fn make(&self, folder: &Path) -> Cmd {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut cmd = Cmd::new("make")
            .arg(format!("-j{jobs}"))
            .arg("-C")
            .arg(folder)
            .args(&self.variables)
            .env(BINDGEN_ENV, &self.bindgen.program)
            .env("LC_ALL", "C")
            .env_remove(&[
                "ARCH",
                "CROSS_COMPILE",
                "KBUILD_EXTMOD",
                "KBUILD_EXTMOD_OUTPUT",
                "KCFLAGS",
                "KCONFIG_ALLCONFIG",
                "KCONFIG_CONFIG",
                "KRUSTFLAGS",
                "LLVM",
                "LOCALVERSION",
            ]);
        if let Some(dir) = &self.bindgen.libclang {
            cmd = cmd.env("LIBCLANG_PATH", dir);
        }
        cmd
    }
}
