// SPDX-License-Identifier: MIT OR Apache-2.0

//! Builds a kernel in the cache, in a folder named by everything that goes
//! into it. A build folder can't be moved, so it is made in place: a stamp,
//! written last, says that it is whole; without one make goes on where it was.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::built::Kernel;
use super::config::Config;
use super::toolchain::Toolchain;
use super::{leftovers, progress, tree};
use crate::hash;
use crate::lock::Lock;
use crate::parallel;
use crate::project::Project;
use crate::tools::{self, Rustc};
use crate::ui::Step;

/// Changes when the way of building does, so that old builds aren't taken.
const RECIPE: &str = "1";
/// How many lines make prints for a whole build, until one was counted here.
const OBJECTS: u64 = 2600;

/// What the stamp of a finished build says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    folder: PathBuf,
    source: String,
    bzimage_sha256: String,
    symvers_sha256: String,
}

/// What a kernel is built with, and where.
struct Plan {
    rustc: Rustc,
    toolchain: Toolchain,
    fragment: String,
    folder: PathBuf,
}

impl Plan {
    fn new(project: &Project, source: &Path, fixed: Option<&str>) -> Result<Self> {
        let rustc = tools::rustc()?;
        let flavour = project.kernel.flavour();
        let toolchain = Toolchain::of_flavour(project, flavour)?;
        let fragment = read_all(project, flavour.fragments())?;
        let key = hash::of_parts(&[
            RECIPE,
            fixed.unwrap_or(&source.to_string_lossy()),
            &fragment,
            &rustc.verbose,
            &toolchain.compiler,
            &toolchain.bindgen_version()?,
        ]);
        Ok(Self {
            folder: project.cache.path("kernel").join(&key[..16]),
            rustc,
            toolchain,
            fragment,
        })
    }
}

/// Fetches what a build takes beside the kernel's source.
///
/// # Errors
///
/// When something can't be had.
pub(super) fn fetch_tools(project: &Project) -> Result<()> {
    let rustc = tools::rustc()?;
    parallel::both(
        || Toolchain::of_flavour(project, project.kernel.flavour()),
        || tools::rust_lib_src(project, &rustc),
    )?;
    Ok(())
}

/// Whether the kernel of a package with the version `fixed` is built already.
///
/// # Errors
///
/// When a tool is missing.
pub(super) fn is_cached(project: &Project, source: &Path, fixed: &str) -> Result<bool> {
    let plan = Plan::new(project, source, Some(fixed))?;
    Ok(is_whole(&plan.folder))
}

/// Builds what isn't built yet of the kernel in `source`. A `fixed` source (a
/// package of that version) can't have changed after its build was stamped; a
/// user's tree may have, so make looks at it every time.
///
/// # Errors
///
/// When a tool is missing, Kconfig drops a line of the fragment, the disk is
/// full, or make fails.
pub(super) fn build(project: &Project, source: &Path, fixed: Option<&str>) -> Result<Kernel> {
    let Plan {
        rustc,
        toolchain,
        fragment,
        folder,
    } = Plan::new(project, source, fixed)?;
    let flavour = project.kernel.flavour();
    let fragments = flavour.fragments();
    if !folder.is_dir() {
        project
            .cache
            .require_space(flavour.space(), "a kernel build")?;
        fs::create_dir_all(&folder)?;
    }
    // What a killed run left running here, such as compilers, has it as long as they live.
    let what = format!("the kernel in {}", folder.display());
    let _lock = Lock::hold(&folder.join(".occupied"), &what)?.inherited()?;
    if fixed.is_some() && is_whole(&folder) {
        return tree::describe(&folder, Config::read(&folder.join(".config"))?, toolchain);
    }
    let lib_src = tools::rust_lib_src(project, &rustc)?;
    let version = match fixed {
        Some(version) => version.to_owned(),
        None => tree::source_version(source)?,
    };
    let before = commands(&folder);
    let step = Step::begin("kernel", &format!("configuring Linux {version}"));
    let stamp_path = folder.join(".complete");
    if stamp_path.exists() {
        fs::remove_file(&stamp_path)?;
    }
    let make = || {
        toolchain
            .make(source)
            .arg(format!("O={}", folder.display()))
            .arg(format!("RUST_LIB_SRC={}", lib_src.display()))
            .env("KBUILD_BUILD_USER", "nobounce")
            .env("KBUILD_BUILD_HOST", "nobounce")
    };
    let wanted = folder.join("nobounce.config");
    fs::write(&wanted, &fragment)?;
    make()
        .arg(format!("KCONFIG_ALLCONFIG={}", wanted.display()))
        .arg("allnoconfig")
        .step(&step, &project.log("kernel-config"))?;
    let config = Config::read(&folder.join(".config"))?;
    check_fragment(&Config::parse(&fragment), &config, fragments, project)?;

    let counted = project.cache.path("kernel").join(flavour.counter());
    let expected = fs::read_to_string(&counted)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(OBJECTS);
    step.expect_objects(expected, before.min(expected));
    // Debuggers' scripts, where they are wanted, have no other target.
    let scripts = (config.get("GDB_SCRIPTS") == "y").then_some("scripts_gdb");
    make()
        .args(["bzImage", "modules"])
        .args(scripts)
        .logged(&project.log("kernel"), |line| {
            if let Some(object) = progress::object(line) {
                step.object(&object);
            }
        })?;
    if before == 0 {
        fs::write(&counted, step.objects().to_string())?;
    }
    write_stamp(&folder, &version)?;
    // make looks at a user's tree each time, and would build what is missing again.
    if fixed.is_some() && !flavour.keeps_objects() {
        leftovers::remove(&folder)
            .with_context(|| format!("can't remove objects in {}", folder.display()))?;
    }
    let kernel = tree::describe(&folder, config, toolchain)?;
    step.done(&format!("Linux {} in {}", kernel.release, folder.display()));
    Ok(kernel)
}

/// About how many objects an interrupted build has made: Kbuild leaves a
/// `.<object>.cmd` beside most of them.
fn commands(folder: &Path) -> u64 {
    let mut count = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => count += commands(&entry.path()),
            Ok(kind) if kind.is_file() => {
                count += u64::from(entry.path().extension().is_some_and(|e| e == "cmd"));
            }
            _ => {}
        }
    }
    count
}

/// The fragments, one after the other.
fn read_all(project: &Project, fragments: &[&str]) -> Result<String> {
    let mut all = String::new();
    for fragment in fragments {
        all += &fs::read_to_string(project.root.join(fragment))?;
    }
    Ok(all)
}

fn check_fragment(
    fragment: &Config,
    config: &Config,
    names: &[&str],
    project: &Project,
) -> Result<()> {
    let lost = fragment.lost_in(config);
    if lost.is_empty() {
        return Ok(());
    }
    let rust = if config.get("RUST") == "y" {
        String::new()
    } else {
        format!(
            "\n  CONFIG_RUST needs a rustc, bindgen and libclang that suit the kernel; what Kconfig \
             found is in {}",
            project.log("kernel-config").display()
        )
    };
    bail!(
        "Kconfig dropped {} of {}: something that they depend on is off, or this kernel \
         has no such option:\n  {}{rust}",
        if lost.len() == 1 { "a line" } else { "lines" },
        names.join(" and "),
        lost.join("\n  ")
    );
}

fn products(folder: &Path) -> Result<(String, String)> {
    Ok((
        hash::of_file(&folder.join("arch/x86/boot/bzImage"))?,
        hash::of_file(&folder.join("Module.symvers"))?,
    ))
}

fn write_stamp(folder: &Path, source: &str) -> Result<()> {
    let (bzimage_sha256, symvers_sha256) = products(folder)?;
    let stamp = Stamp {
        folder: folder.to_path_buf(),
        source: source.to_owned(),
        bzimage_sha256,
        symvers_sha256,
    };
    let new = folder.join(".complete.new");
    fs::write(&new, serde_json::to_string_pretty(&stamp)?)?;
    fs::rename(&new, folder.join(".complete"))?;
    Ok(())
}

/// Whether the stamp is there, was written in this very folder, and the files
/// are the ones that it was written for.
fn is_whole(folder: &Path) -> bool {
    let stamp = fs::read_to_string(folder.join(".complete"))
        .ok()
        .and_then(|text| serde_json::from_str::<Stamp>(&text).ok());
    match (stamp, products(folder)) {
        (Some(stamp), Ok((bzimage, symvers))) => {
            stamp.folder == folder
                && stamp.bzimage_sha256 == bzimage
                && stamp.symvers_sha256 == symvers
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("k");
        fs::create_dir_all(folder.join("arch/x86/boot")).unwrap();
        fs::write(folder.join("arch/x86/boot/bzImage"), "kernel").unwrap();
        fs::write(folder.join("Module.symvers"), "symbols").unwrap();
        (dir, folder)
    }

    #[test]
    fn a_build_without_a_stamp_is_not_whole() {
        let (_dir, folder) = built();
        assert!(!is_whole(&folder));
        write_stamp(&folder, "7.3.4").unwrap();
        assert!(is_whole(&folder));
    }

    #[test]
    fn a_build_whose_files_changed_or_went_is_not_whole() {
        let (_dir, folder) = built();
        write_stamp(&folder, "7.3.4").unwrap();
        fs::write(folder.join("Module.symvers"), "other").unwrap();
        assert!(!is_whole(&folder), "a changed file was taken");
        write_stamp(&folder, "7.3.4").unwrap();
        fs::remove_file(folder.join("arch/x86/boot/bzImage")).unwrap();
        assert!(!is_whole(&folder), "a missing file was taken");
    }

    #[test]
    fn a_build_that_was_moved_is_not_whole() {
        let (dir, folder) = built();
        write_stamp(&folder, "7.3.4").unwrap();
        let moved = dir.path().join("elsewhere");
        fs::rename(&folder, &moved).unwrap();
        assert!(!is_whole(&moved));
    }

    #[test]
    fn a_damaged_stamp_counts_as_none() {
        let (_dir, folder) = built();
        fs::write(folder.join(".complete"), "{ \"folder\": ").unwrap();
        assert!(!is_whole(&folder));
    }
}
