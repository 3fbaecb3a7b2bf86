// SPDX-License-Identifier: MIT OR Apache-2.0

//! The manifest: what there is to boot.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Environment variable with the path of the manifest.
pub const ENV: &str = "NOBOUNCE_GUEST";

/// What the build made: `guest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Images {
    /// The kernel, a bzImage.
    pub kernel: PathBuf,
    /// The initramfs with the agent as `/init` and modules in `/lib/modules`.
    pub initramfs: PathBuf,
    /// Our modules in the initramfs, those that the kernel has the options for, as files with
    /// symbols.
    #[serde(default)]
    pub modules: Vec<PathBuf>,
    /// `uname -r` of the kernel.
    pub kernel_release: String,
    /// Memory that this kernel takes for itself, in MiB, where it is no ordinary one: a machine
    /// has that much more.
    #[serde(default)]
    pub extra_memory_mib: u64,
    /// What this kernel wants on its command line, besides what a machine has there.
    #[serde(default)]
    pub kernel_parameters: Vec<String>,
    /// The kernel's `.config`.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// How to start QEMU.
    pub qemu: QemuCommand,
    /// The counter, a plugin for this QEMU; only measurements need it.
    #[serde(default)]
    pub counter: Option<PathBuf>,
    /// The program with our models of devices, where one was built.
    #[serde(default)]
    pub devices: Option<PathBuf>,
    /// The kernel's `System.map`, beside `vmlinux`; only measurements and debuggers need it.
    #[serde(default)]
    pub symbols: Option<PathBuf>,
    /// A disk image with a root file system, for programs that are not ours in this guest:
    /// see [`Machine::disk`](crate::Machine::disk).
    #[serde(default)]
    pub disk: Option<PathBuf>,
    /// Directory for snapshots of guests that have booted, or were prepared: see
    /// [`Machine::snapshot`](crate::Machine::snapshot), [`Machine::prepared`](crate::Machine::prepared).
    #[serde(default)]
    pub snapshots: Option<PathBuf>,
    /// Directory below which every boot makes one of its own for its logs.
    pub logs: PathBuf,
}

/// How to start QEMU, which may be an unpacked one with a loader of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QemuCommand {
    /// Program and first arguments; the machine's arguments follow.
    pub argv: Vec<String>,
    /// Environment variables to set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Version, for reports.
    pub version: String,
}

impl Images {
    /// Whether our module of this name is in the initramfs.
    #[must_use]
    pub fn has_module(&self, name: &str) -> bool {
        let mut names = self.modules.iter().filter_map(|path| path.file_stem());
        names.any(|found| found == name)
    }

    /// The first of `options`, named as in Kconfig, that the kernel is built without, or has as a
    /// module: the guest has few of the kernel's. Where it has one, the option is named with `=m`.
    /// None where the manifest names no `.config`.
    ///
    /// # Errors
    ///
    /// [`Error::ManifestUnreadable`] when the `.config` can't be read.
    pub fn lacks<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> Result<Option<&'a str>> {
        let Some(path) = &self.config else {
            return Ok(None);
        };
        let config = fs::read_to_string(path).map_err(|error| Error::ManifestUnreadable {
            path: path.clone(),
            error,
        })?;
        let set = |option: &str| {
            let value = if option.contains('=') { "" } else { "=y" };
            let wanted = format!("CONFIG_{option}{value}");
            config.lines().any(|line| line == wanted)
        };
        Ok(options.into_iter().find(|option| !set(option)))
    }

    /// Reads the manifest that the environment names.
    ///
    /// # Errors
    ///
    /// [`Error::NoManifest`] when [`ENV`] is not set, and those of [`Images::load`].
    pub fn from_env() -> Result<Self> {
        let path = env::var_os(ENV).ok_or(Error::NoManifest)?;
        Self::load(Path::new(&path))
    }

    /// Reads a manifest and looks whether its files are there.
    ///
    /// # Errors
    ///
    /// [`Error::ManifestUnreadable`], [`Error::ManifestInvalid`], [`Error::ImageMissing`].
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read(path).map_err(|error| Error::ManifestUnreadable {
            path: path.to_owned(),
            error,
        })?;
        let images: Self =
            serde_json::from_slice(&text).map_err(|error| Error::ManifestInvalid {
                path: path.to_owned(),
                error,
            })?;
        images.check()?;
        Ok(images)
    }

    /// Files that are there, and that nothing boots from.
    #[cfg(test)]
    pub(crate) fn of_nothing() -> Self {
        Self {
            kernel: "/proc/self/exe".into(),
            initramfs: "/proc/self/exe".into(),
            modules: Vec::new(),
            kernel_release: String::new(),
            extra_memory_mib: 0,
            kernel_parameters: Vec::new(),
            config: None,
            qemu: QemuCommand {
                argv: vec!["/nonexistent".to_owned()],
                env: BTreeMap::new(),
                version: String::new(),
            },
            counter: None,
            devices: None,
            symbols: None,
            disk: None,
            snapshots: None,
            logs: "/nonexistent".into(),
        }
    }

    /// Looks whether the files are there.
    pub(crate) fn check(&self) -> Result<()> {
        let files = [("kernel", &self.kernel), ("initramfs", &self.initramfs)];
        let disk = self.disk.iter().map(|disk| ("disk", disk));
        for (what, path) in files.into_iter().chain(disk) {
            if !path.is_file() {
                return Err(Error::ImageMissing {
                    what,
                    path: path.clone(),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_is_a_module_is_lacking_unless_a_module_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        let text = "CONFIG_BUILT_IN=y\nCONFIG_MODULE=m\n# CONFIG_OFF is not set\n";
        fs::write(&config, text).unwrap();
        let images = Images {
            config: Some(config),
            ..Images::of_nothing()
        };
        for option in ["MODULE", "OFF", "BUILT", "BUILT_IN=m"] {
            assert_eq!(images.lacks(["BUILT_IN", option]).unwrap(), Some(option));
        }
        assert_eq!(images.lacks(["BUILT_IN", "MODULE=m"]).unwrap(), None);
    }
}
