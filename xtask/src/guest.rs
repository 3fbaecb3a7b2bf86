// SPDX-License-Identifier: MIT OR Apache-2.0

//! Everything that a virtual machine boots from, in one manifest: kernel,
//! initramfs with agent and modules, QEMU, and a disk where there is one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cases::Nic;
use fs_err as fs;
use provision::files;
use vm::{Images, QemuCommand};

use crate::kernel::{self, Kernel, Use};
use crate::kselftest::image;
use crate::project::Project;
use crate::qemu;
use crate::ui::Step;
use crate::{devices, initramfs, module, packages, parallel, plugin, snapshots};

/// The target that the agent is built for. It is named, even though it is the
/// host's, so that build scripts and proc-macros aren't linked statically too.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Modules of the kernel build that cases use, where the kernel has them: the
/// C driver to compare with, and the kernel's own simulated NIC.
const MODULES: &[&str] = &["igb", "netdevsim"];

/// What KASAN takes of a machine with a few hundred MiB: shadow memory, red zones, quarantine; and
/// what its companions take.
const KASAN_MIB: u64 = 512;

/// While the first processor is identified, its features are unknown for a moment. KASAN then takes
/// addresses of five levels of page tables for wild ones, when an interrupt comes.
const KASAN_PARAMETER: &str = "no5lvl";

/// Does all that is needed to boot a guest, and writes the manifest.
///
/// # Errors
///
/// Those of the steps.
pub(crate) fn prepare(project: &Project) -> Result<Images> {
    let images = prepare_images(project, Use::Guest)?;
    write_manifest(&manifest_path(project), &images)?;
    Ok(images)
}

/// As [`prepare`], with our models of devices, which some cases want.
///
/// # Errors
///
/// Those of the steps.
pub(crate) fn prepare_for_cases(project: &Project) -> Result<Images> {
    let mut images = prepare_images(project, Use::Guest)?;
    images.devices = Some(devices::build(project)?);
    write_manifest(&manifest_path(project), &images)?;
    Ok(images)
}

/// As [`prepare_for_cases`], and writes a manifest with the disk that the kernel's own selftests run from, too. Other
/// runs write the first one anew.
///
/// # Errors
///
/// Those of the steps.
pub(crate) fn prepare_for_selftests(project: &Project) -> Result<Images> {
    let images = prepare_for_cases(project)?;
    let kernel = kernel::prepare(project, Use::Guest)?;
    let images = Images {
        disk: Some(image::prepare(project, &kernel)?),
        ..images
    };
    write_manifest(&selftests_manifest_path(project), &images)?;
    Ok(images)
}

/// As [`prepare`], for a guest that has the host's file system, and without a manifest.
///
/// # Errors
///
/// Those of the steps.
pub(crate) fn prepare_lab(project: &Project) -> Result<Images> {
    prepare_images(project, Use::Programs)
}

fn prepare_images(project: &Project, wanted: Use) -> Result<Images> {
    let missing = packages::to_install()?;
    // What is fetched leaves the processors idle, and so does the kernel's build now and then.
    let (kernel, (agent, qemu, counter)) = parallel::both(
        || {
            packages::install(project, &missing)?;
            kernel::prepare(project, wanted)
        },
        || {
            parallel::give_way();
            let agent = agent(project)?;
            let qemu = qemu::prepare(project)?;
            let counter = plugin::build(project, &qemu)?;
            Ok((agent, qemu, counter))
        },
    )?;
    let ours = module::build(project, &kernel)?;
    let initramfs = project.out("initramfs.cpio");
    pack(&initramfs, &agent, &kernel, &ours)?;
    let snapshots = match wanted {
        // Each run of the lab is one of many.
        Use::Programs => {
            let folder = project.out("lab-snapshots");
            snapshots::keep_latest(&folder)?;
            folder
        }
        _ => {
            let folder = project.out("snapshots");
            snapshots::forget(&folder)?;
            folder
        }
    };
    Ok(Images {
        counter: Some(counter),
        snapshots: Some(snapshots),
        ..images(project, &kernel, &ours, initramfs, qemu)?
    })
}

/// Builds the modules of a NIC under test, packs an initramfs that has them too, and writes a
/// manifest, both into `out`. Returns the manifest. The guest must be prepared
/// for cases.
///
/// # Errors
///
/// When a module is missing or can't be built, or a file can't be read or written.
pub(crate) fn prepare_nic(project: &Project, nic: &Nic, out: &Path) -> Result<PathBuf> {
    let kernel = kernel::prepare(project, Use::Guest)?;
    let mut images = Images::load(&manifest_path(project))?;
    if let Some(folder) = &nic.build {
        let built = module::build_folder(folder, &out.join("module"), &kernel, project)?;
        images.modules.extend(built);
    }
    images.modules.extend_from_slice(&nic.modules);
    let wanted: Vec<_> = nic.load.iter().map(String::as_str).collect();
    let mut modules = module::with_dependencies(&kernel, &[MODULES, &wanted].concat())?;
    modules.extend_from_slice(&images.modules);
    module::check_all_there(&nic.load, &modules)
        .with_context(|| format!("{} can't be tested on {}", nic.name, kernel.release))?;
    images.initramfs = out.join("initramfs.cpio");
    initramfs::write(&images.initramfs, &agent(project)?, &modules)?;
    let manifest = out.join("guest.json");
    write_manifest(&manifest, &images)?;
    Ok(manifest)
}

/// Writes a manifest, also while tests of another run are reading it.
///
/// # Errors
///
/// When it can't be written.
pub(crate) fn write_manifest(path: &Path, images: &Images) -> Result<()> {
    let new = path.with_extension("new");
    files::write_json(&new, images)?;
    Ok(fs::rename(&new, path)?)
}

/// Where the manifest is, for `NOBOUNCE_GUEST`.
pub(crate) fn manifest_path(project: &Project) -> PathBuf {
    project.out("guest.json")
}

/// Where that of the kernel's own selftests is, for `NOBOUNCE_LAB`.
pub(crate) fn selftests_manifest_path(project: &Project) -> PathBuf {
    project.out("selftests.json")
}

/// Builds the agent as a static program.
///
/// # Errors
///
/// When cargo fails.
pub(crate) fn agent(project: &Project) -> Result<PathBuf> {
    let step = Step::begin("agent", "building the guest's PID 1");
    let target = project.target.join("guest");
    project
        .cargo()
        .args([
            "build",
            "--release",
            "--package",
            "agent",
            "--target",
            TARGET,
        ])
        .arg("--target-dir")
        .arg(&target)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env_remove(&["CARGO_ENCODED_RUSTFLAGS"])
        .step(&step, &project.log("agent"))?;
    let agent = target.join(TARGET).join("release/agent");
    if !agent.is_file() {
        bail!("cargo built no {}", agent.display());
    }
    step.done(&agent.display().to_string());
    Ok(agent)
}

/// Builds the agent and packs it with our modules, `ours`, and the kernel's.
///
/// # Errors
///
/// When cargo fails or a file can't be read or written.
pub(crate) fn initramfs(project: &Project, kernel: &Kernel, ours: &[PathBuf]) -> Result<PathBuf> {
    let agent = agent(project)?;
    let archive = project.out("initramfs.cpio");
    pack(&archive, &agent, kernel, ours)?;
    Ok(archive)
}

/// Packs the agent with our modules, `ours`, and the kernel's.
///
/// # Errors
///
/// When a file can't be read or written.
pub(crate) fn pack(archive: &Path, agent: &Path, kernel: &Kernel, ours: &[PathBuf]) -> Result<()> {
    let step = Step::begin("initramfs", "packing");
    let mut modules = module::with_dependencies(kernel, MODULES)?;
    modules.extend_from_slice(ours);
    initramfs::write(archive, agent, &modules)?;
    step.done(&format!(
        "{} with {} modules",
        archive.display(),
        modules.len()
    ));
    Ok(())
}

fn images(
    project: &Project,
    kernel: &Kernel,
    ours: &[PathBuf],
    initramfs: PathBuf,
    qemu: QemuCommand,
) -> Result<Images> {
    let image = kernel.build.join("arch/x86/boot/bzImage");
    if !image.is_file() {
        bail!(
            "the kernel in {} has no arch/x86/boot/bzImage: run `make bzImage` there",
            kernel.build.display()
        );
    }
    let logs = project.out("vm");
    fs::create_dir_all(&logs)?;
    let symbols = Some(kernel.build.join("System.map")).filter(|path| path.is_file());
    let kasan = kernel.config.get("KASAN") == "y";
    Ok(Images {
        kernel: image,
        initramfs,
        modules: ours.to_vec(),
        kernel_release: kernel.release.clone(),
        extra_memory_mib: if kasan { KASAN_MIB } else { 0 },
        kernel_parameters: kasan
            .then(|| KASAN_PARAMETER.to_owned())
            .into_iter()
            .collect(),
        config: Some(kernel.build.join(".config")),
        qemu,
        counter: None,
        devices: None,
        symbols,
        disk: None,
        snapshots: None,
        logs,
    })
}
