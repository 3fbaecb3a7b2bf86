// SPDX-License-Identifier: MIT OR Apache-2.0

//! Linux from Debian's source package, unpacked into the cache.

use std::path::PathBuf;

use anyhow::Result;
use fs_err as fs;

use crate::apt::Apt;
use crate::cmd::Cmd;
use crate::project::Project;
use crate::ui::Step;

/// The version that is taken unless the user names one.
const VERSION: &str = "7.3";
/// A package, its archive and the tree: 1.6 GB at the fullest moment.
const SPACE: u64 = 1_800_000_000;
/// More than a quarter of the tree describes registers of GPUs, and no kernel of ours reads it.
const UNREAD: &str = "*/drivers/gpu/drm/amd/include/*";

/// A source tree in the cache.
pub struct Source {
    /// The tree.
    pub dir: PathBuf,
    /// The package's Debian version.
    pub version: String,
}

/// The source tree; downloaded and unpacked on first use. Once there it stays
/// the same, whatever Debian offers later, until `clean --cache` removes it.
///
/// # Errors
///
/// No apt, no network, no space: see [`Apt`].
pub fn fetch(project: &Project) -> Result<Source> {
    let asked = project.kernel.of_several.as_ref();
    let version = asked.and_then(|kernel| kernel.version.as_deref());
    // Debian's package: `/usr/src/<name>.tar.xz` with a folder of the same name.
    let name = format!("linux-source-{}", version.unwrap_or(VERSION));
    let prefix = format!("{name}_");
    let find = || {
        project.cache.list("source").into_iter().find_map(|dir| {
            let version = dir.file_name()?.to_str()?.strip_prefix(&prefix)?.to_owned();
            Some(Source { dir, version })
        })
    };
    let fetch = || fetch_package(project, &name, &prefix);
    project.cache.find_or_make(&name, find, fetch)
}

fn fetch_package(project: &Project, name: &str, prefix: &str) -> Result<Source> {
    project.cache.require_space(SPACE, "the kernel source")?;
    let step = Step::begin("source", &format!("getting {name}"));
    let package = project.cache.scratch("source-package")?;
    // apt has others wait no longer than for the download.
    let version = Apt::new(project).unpack(&step, &project.cache, name, None, &package)?;
    let dir = project
        .cache
        .once(&format!("source/{prefix}{version}"), |work| {
            step.detail(&format!("unpacking the source of {version}"));
            Cmd::new("tar")
                // Debian's archive has blocks that are unpacked at the same time.
                .env("XZ_DEFAULTS", "--threads=0")
                .args(["--extract", "--strip-components=1"])
                .args(["--exclude", UNREAD, "--file"])
                .arg(package.join(format!("usr/src/{name}.tar.xz")))
                .arg("--directory")
                .arg(work)
                .step(&step, &project.log("source"))
        })?;
    fs::remove_dir_all(&package)?;
    step.done(&format!("Linux {version} in {}", dir.display()));
    Ok(Source { dir, version })
}
