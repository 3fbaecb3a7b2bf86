// SPDX-License-Identifier: MIT OR Apache-2.0

//! The disk image that the selftests run in: the root file system, and in it
//! the tests, built from the source of the kernel that they test.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;
use kselftest::{SELFTESTS, SOURCE};

use super::root::{self, Root};
use crate::cmd::Cmd;
use crate::kernel::{self, Kernel};
use crate::llvm::{self, Llvm};
use crate::project::Project;
use crate::ui::Step;
use crate::unpacked::{LIBRARY, write_program};
use crate::{cache, hash};

/// Changes when the way of making it does.
const RECIPE: &str = "2";
/// The image, 250 MB, and what it is made of.
const SPACE: u64 = 1_000_000_000;
/// Size of the file system; the image is sparse.
const SIZE: &str = "1G";
/// What is built.
const TARGETS: &str = "drivers/net drivers/net/hw";

/// What the build needs of the kernel's source.
const SOURCES: &[&str] = &[
    "Documentation/netlink",
    // The generator of netlink code looks for the top of the source by it.
    "MAINTAINERS",
    "include/uapi",
    "scripts/bpf_doc.py",
    "scripts/subarch.include",
    "tools/arch",
    "tools/build",
    "tools/include",
    "tools/lib",
    "tools/net/ynl",
    "tools/scripts",
    "tools/testing/selftests/Makefile",
    "tools/testing/selftests/drivers/net",
    "tools/testing/selftests/kselftest",
    "tools/testing/selftests/kselftest.h",
    "tools/testing/selftests/kselftest_harness.h",
    "tools/testing/selftests/lib.mk",
    "tools/testing/selftests/net",
];
/// What the tests need of it, when they are built.
const WANTED: &[&str] = &[
    "Documentation/netlink",
    "tools/net/ynl",
    "tools/testing/selftests",
];
/// What the tests find on PATH before iperf3. They end it by SIGTERM; when that interrupts its report,
/// it may wait for itself, and the test gives up after 20 s. No test reads what it would say then.
const IPERF3: &str = "#!/bin/sh
/usr/bin/iperf3 \"$@\" &
trap \"kill -KILL $!\" TERM
wait $!
";

/// The image in the cache, made on first use.
///
/// # Errors
///
/// No network, no space, or a test that can't be built.
pub(crate) fn prepare(project: &Project, kernel: &Kernel) -> Result<PathBuf> {
    let root = root::prepare(project)?;
    let llvm = llvm::prepare(project)?;
    let key = hash::of_parts(&[
        RECIPE,
        &root.dir.to_string_lossy(),
        &kernel.source.to_string_lossy(),
        &kernel.release,
        &llvm.version,
    ]);
    let name = format!("selftests/{}", &key[..16]);
    let image = "root.img";
    if project.cache.path(&name).is_dir() {
        return Ok(project.cache.path(&name).join(image));
    }
    project.cache.require_space(SPACE, "the selftests")?;
    let step = Step::begin("selftests", "building the kernel's driver selftests");
    let folder = project.cache.once(&name, |work| {
        let tree = work.join("linux");
        copy(project, kernel, &step, &tree)?;
        build(project, &step, &root, &llvm, &work.join("bin"), &tree)?;
        step.detail("making an image");
        let staged = work.join("root");
        stage(&root, &tree, &staged)?;
        write_program(&staged.join("usr/sbin/iperf3"), IPERF3)?;
        root::compile(
            &root.dir,
            &[staged.join(&SOURCE[1..])],
            &project.log("python"),
        )?;
        root.run("usr/sbin/mke2fs")
            .args(["-q", "-t", "ext4", "-O", "^has_journal", "-d"])
            .arg(&staged)
            .arg(work.join(image))
            .arg(SIZE)
            .env("MKE2FS_CONFIG", root.dir.join("etc/mke2fs.conf"))
            .step(&step, &project.log("image"))?;
        for part in ["linux", "bin", "root"] {
            cache::remove_dir(&work.join(part))?;
        }
        Ok(())
    })?;
    step.done(&folder.display().to_string());
    Ok(folder.join(image))
}

/// Copies what the build needs, and makes the headers for user space.
fn copy(project: &Project, kernel: &Kernel, step: &Step, tree: &Path) -> Result<()> {
    for part in SOURCES {
        let place = tree.join(part);
        let parent = place.parent().unwrap_or(tree);
        fs::create_dir_all(parent)?;
        Cmd::new("cp")
            .args(["-a", "-T"])
            .arg(kernel.source.join(part))
            .arg(&place)
            .output()?;
    }
    step.detail("making the kernel's headers");
    kernel::make(kernel)
        .arg("headers")
        .step(step, &project.log("headers"))?;
    Cmd::new("cp")
        .args(["-a", "-T"])
        .arg(kernel.build.join("usr"))
        .arg(tree.join("usr"))
        .output()
        .map(drop)
}

/// Builds the tests where they are. The machine's gcc and make do it, with headers and libraries of
/// the root file system: what the tests are looks for them where a system has them.
fn build(
    project: &Project,
    step: &Step,
    root: &Root,
    llvm: &Llvm,
    bin: &Path,
    tree: &Path,
) -> Result<()> {
    fs::create_dir_all(bin)?;
    let sysroot = root.dir.display();
    // gcc would take the machine's own libraries, wherever its headers are from. That a library is
    // linked is a matter of order: those that a test wants may be named before it.
    let gcc = format!(
        "#!/bin/sh\nexec gcc --sysroot='{sysroot}' -B'{sysroot}/{LIBRARY}' \
         -L'{sysroot}/{LIBRARY}' -Wl,--no-as-needed \"$@\"\n"
    );
    write_program(&bin.join("cc"), &gcc)?;
    write_program(&bin.join("python3"), &root.script("python3"))?;
    let path = std::env::var("PATH").unwrap_or_default();
    Cmd::new("make")
        .arg("-C")
        .arg(tree.join(SELFTESTS))
        .arg("all")
        .arg(format!("TARGETS={TARGETS}"))
        .arg("FORCE_TARGETS=1")
        .arg(format!("CC={}", bin.join("cc").display()))
        .arg(format!(
            "CLANG={} --sysroot={sysroot}",
            llvm.clang().display()
        ))
        // A test of the Makefile's uses `echo -e`.
        .arg("SHELL=/bin/bash")
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("LC_ALL", "C")
        .env_remove(&[
            "CFLAGS",
            "LDFLAGS",
            "OUTPUT",
            "LLVM",
            "ARCH",
            "CROSS_COMPILE",
        ])
        .step(step, &project.log("selftests"))
}

/// The root file system with the tests in it.
fn stage(root: &Root, tree: &Path, staged: &Path) -> Result<()> {
    // Files are shared: none is changed.
    Cmd::new("cp")
        .args(["-a", "-l", "-T"])
        .arg(&root.dir)
        .arg(staged)
        .output()?;
    let place = staged.join(&SOURCE[1..]);
    for part in WANTED {
        let to = place.join(part);
        fs::create_dir_all(to.parent().unwrap_or(&place))?;
        fs::rename(tree.join(part), &to)?;
    }
    Ok(())
}
