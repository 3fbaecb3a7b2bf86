// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a kernel, and the modules for it, are compiled with.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::config::Config;
use crate::cmd::Cmd;
use crate::llvm::{self, BINDGEN_ENV};
use crate::pahole;
use crate::project::Project;
use crate::tools;

/// How make is called so that it takes these tools.
pub(crate) struct Toolchain {
    variables: Vec<String>,
    bindgen: PathBuf,
    /// The compiler's version, as it says it, and that of pahole.
    pub(super) compiler: String,
}

impl Toolchain {
    /// The machine's gcc.
    pub(super) fn gcc(project: &Project) -> Result<Self> {
        let bindgen = tools::bindgen(project)?;
        Ok(Self {
            variables: vec![format!("BINDGEN={}", bindgen.display())],
            bindgen,
            compiler: Cmd::new("gcc").arg("--version").output()?,
        })
    }

    /// The same, and pahole from the cache.
    pub(super) fn with_pahole(mut self, project: &Project) -> Result<Self> {
        let pahole = pahole::prepare(project)?;
        let program = pahole.program.display();
        self.variables.push(format!("PAHOLE={program}"));
        self.compiler.push_str(&pahole.version);
        Ok(self)
    }

    /// clang from the cache.
    pub(super) fn clang(project: &Project) -> Result<Self> {
        let llvm = llvm::prepare(project)?;
        Ok(Self {
            variables: llvm.make_variables(),
            // A loader takes a path only.
            bindgen: absolute(tools::bindgen(project)?)?,
            compiler: llvm.version,
        })
    }

    /// The toolchain that a user's kernel with this configuration was built with.
    pub(super) fn of(project: &Project, config: &Config) -> Result<Self> {
        let bindgen = tools::bindgen(project)?;
        let mut variables = vec![format!("BINDGEN={}", bindgen.display())];
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
        Cmd::new(&self.bindgen).arg("--version").output()
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
            .env(BINDGEN_ENV, &self.bindgen)
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
        if let Some(dir) = tools::libclang() {
            cmd = cmd.env("LIBCLANG_PATH", dir);
        }
        cmd
    }
}

fn absolute(program: PathBuf) -> Result<PathBuf> {
    if program.components().count() > 1 {
        return Ok(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(&program))
        .find(|place| place.is_file())
        .with_context(|| format!("{} is not on PATH any more", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_on_the_path_and_a_path_stays_as_it_is() {
        let sh = absolute("sh".into()).unwrap();
        assert!(sh.is_absolute() && sh.ends_with("sh"), "{}", sh.display());
        assert_eq!(
            absolute("/x/bindgen".into()).unwrap(),
            Path::new("/x/bindgen")
        );
        assert!(absolute("no-such-program".into()).is_err());
    }
}
