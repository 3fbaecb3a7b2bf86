// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the selftests run in: Debian packages, unpacked in the cache and made a
//! root file system by hand, because their own scripts would want root. They
//! are newer than the machine's, and so their headers and libraries are also
//! what the selftests are compiled with, and their programs what an image is
//! made with: run through their own loader, nothing of the machine matters.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;

use crate::apt::Apt;
use crate::cmd::Cmd;
use crate::hash;
use crate::project::Project;
use crate::ui::Step;
use crate::unpacked::{self, LIBRARY, LOADER};

/// Changes when the way of making it does.
const RECIPE: &str = "1";
/// What the tests run.
const PROGRAMS: &[&str] = &[
    "base-files",
    "bash",
    "bc",
    "bpftool",
    "bpftrace",
    "coreutils",
    "dash",
    "diffutils",
    "ethtool",
    "findutils",
    "grep",
    "hostname",
    "iperf3",
    "iproute2",
    "iputils-arping",
    "iputils-ping",
    "jq",
    "kmod",
    "mawk",
    "mount",
    "netsniff-ng",
    "procps",
    "psmisc",
    "python3",
    "python3-jsonschema",
    "python3-yaml",
    "sed",
    "socat",
    "strace",
    "tcpdump",
    "udev",
    "util-linux",
];
/// What they are compiled with.
const LIBRARIES: &[&str] = &[
    "libc6-dev",
    "libcap-dev",
    "libelf-dev",
    "libmnl-dev",
    "libnuma-dev",
    "liburing-dev",
    "zlib1g-dev",
];
/// What an image is made with.
const TOOLS: &[&str] = &["e2fsprogs"];
/// The packages, 121 MB, and what they unpack to.
const SPACE: u64 = 800_000_000;
/// Files that are not needed in a guest.
const NOT_NEEDED: &[&str] = &[
    "boot",
    "usr/lib/systemd",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/perl5",
];
/// What packages write when they are installed: file, contents.
const FILES: &[(&str, &str)] = &[
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    (
        "etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\n",
    ),
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    ),
];
/// Links that they make: where, to what.
const LINKS: &[(&str, &str)] = &[("usr/bin/awk", "mawk")];

/// The root file system as a folder.
pub(super) struct Root {
    /// The folder, for `--sysroot`.
    pub(super) dir: PathBuf,
}

impl Root {
    /// One of its programs, run on this machine.
    pub(super) fn run(&self, program: &str) -> Cmd {
        run(&self.dir, program)
    }

    /// A script that runs one of its programs, for those who look for it on PATH.
    pub(super) fn script(&self, program: &str) -> String {
        let root = self.dir.display();
        format!(
            "#!/bin/sh\nexport PYTHONHOME='{root}/usr' PYTHONDONTWRITEBYTECODE=1\nexec \
             '{root}/{LOADER}' --library-path '{root}/{LIBRARY}' --argv0 \"$0\" \
             '{root}/usr/bin/{program}' \"$@\"\n"
        )
    }
}

fn run(root: &Path, program: &str) -> Cmd {
    unpacked::run(root, program).env("PYTHONHOME", root.join("usr"))
}

/// The root file system in the cache, made on first use. It stays as it is until the list of
/// packages changes, whatever Debian offers later.
///
/// # Errors
///
/// No apt, no network, no space: see [`Apt`].
pub(super) fn prepare(project: &Project) -> Result<Root> {
    let packages: Vec<&str> = [PROGRAMS, LIBRARIES, TOOLS].concat();
    let key = hash::of_parts(&[RECIPE, &packages.join(" ")]);
    let name = format!("debian/forky-{}", &key[..16]);
    if project.cache.path(&name).is_dir() {
        let dir = project.cache.path(&name);
        return Ok(Root { dir });
    }
    project.cache.require_space(SPACE, "a root file system")?;
    let step = Step::begin("root", "getting Debian's packages for the selftests");
    let apt = Apt::forky(project);
    let dir = project.cache.once(&name, |work| {
        apt.unpack_whole(&step, &project.cache, &packages, NOT_NEEDED, work)?;
        for (file, text) in FILES {
            let path = work.join(file);
            fs::write(&path, text)?;
        }
        for (place, target) in LINKS {
            symlink(target, work.join(place)).with_context(|| format!("can't make {place}"))?;
        }
        step.detail("compiling Python's modules");
        compile(work, &python_folders(work)?, &project.log("python"))
    })?;
    step.done(&dir.display().to_string());
    Ok(Root { dir })
}

/// Where Python has its modules.
fn python_folders(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("usr/lib"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("python3") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Compiles Python's sources in `folders` with the Python of `root`: an emulated processor would
/// take long.
pub(super) fn compile(root: &Path, folders: &[PathBuf], log: &Path) -> Result<()> {
    run(root, "usr/bin/python3")
        .args(["-m", "compileall", "-q"])
        .args(["--invalidation-mode", "unchecked-hash"])
        .args(folders)
        .logged(log, |_| {})
}
