// SPDX-License-Identifier: MIT OR Apache-2.0

//! Kernel trees that the user built: finding them, seeing whether they
//! suit, and running make against them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::args::KernelArgs;
use super::built::Kernel;
use super::config::Config;
use super::toolchain::Toolchain;
use super::wanted::Use;
use crate::cmd::Cmd;
use crate::project::Project;
use crate::tools::{self, Rustc};

/// What the drivers use that came last, and where in a source tree it is. The kernel crate and the net
/// core change with every release: a kernel that lacks one of these can't have rigb.
const USED: &[(&str, &str)] = &[
    ("rust/kernel/sync/lock/spinlock.rs", "SpinLockIrq"),
    ("rust/kernel/sync/barrier.rs", "dma_mb"),
    ("rust/kernel/error.rs", "ENETDOWN"),
    ("rust/macros/vtable.rs", "OwnerModule"),
    ("include/linux/netdevice.h", "ndo_work"),
    ("include/linux/netdevice.h", "ndo_set_rx_mode_async"),
    ("include/linux/ethtool.h", "op_needs_rtnl"),
    ("include/net/netdev_queues.h", "rx_page_size"),
];
/// The first release that has them.
const FIRST: &str = "7.3";

/// Which kernel was asked for.
pub(super) enum Found {
    /// A configured tree or output folder; never configured or built by us.
    Built(PathBuf),
    /// A source tree without a configuration: ours to build, in the cache.
    Source(PathBuf),
    /// None: Debian's source.
    None,
}

/// Sorts out `KDIR` and `KBUILD_OUTPUT`.
///
/// # Errors
///
/// When one of them names something that is no kernel tree.
pub(super) fn find(args: &KernelArgs) -> Result<Found> {
    if let Some(output) = &args.kbuild_output {
        let output = folder("KBUILD_OUTPUT", output)?;
        if !output.join(".config").is_file() {
            bail!(
                "KBUILD_OUTPUT={} has no .config: it must be the O= folder of a kernel build that \
                 is finished; to have nobounce build a kernel of yours, set KDIR alone to its \
                 source",
                output.display()
            );
        }
        return Ok(Found::Built(output));
    }
    let Some(kdir) = &args.kdir else {
        return Ok(Found::None);
    };
    let kdir = folder("KDIR", kdir)?;
    if kdir.join(".config").is_file() {
        return Ok(Found::Built(kdir));
    }
    if !kdir.join("Kbuild").is_file() || !kdir.join("Makefile").is_file() {
        bail!(
            "KDIR={} is no kernel tree: it has no Kbuild and Makefile",
            kdir.display()
        );
    }
    check_source(&source_version(&kdir)?, &kdir)?;
    Ok(Found::Source(kdir))
}

/// Opens a kernel that the user built, and checks that it is suitable.
///
/// # Errors
///
/// When it isn't built, is too old, lacks options (all of them are named), or
/// was built by another rustc.
pub(super) fn open(project: &Project, build: &Path, wanted: Use) -> Result<Kernel> {
    let config = Config::read(&build.join(".config"))?;
    let lacks = config.lacks(wanted);
    if !lacks.is_empty() {
        bail!(
            "the kernel in {} lacks {} option{} (see qemu/kernel/base.config for a whole \
             configuration):\n  {}",
            build.display(),
            lacks.len(),
            if lacks.len() == 1 { "" } else { "s" },
            lacks.join("\n  ")
        );
    }
    for file in ["include/config/kernel.release", "Module.symvers"] {
        if !build.join(file).is_file() {
            bail!(
                "the kernel in {} is configured but not built ({file} is missing): run `make \
                 bzImage modules` there",
                build.display()
            );
        }
    }
    let rustc = tools::rustc()?;
    check_rustc(config.get("RUSTC_VERSION_TEXT"), &rustc, build)?;
    let toolchain = Toolchain::of(project, &config)?;
    let kernel = describe(build, config, toolchain)?;
    check_source(&kernel.release, &kernel.source)?;
    Ok(kernel)
}

/// The kernel in a build folder that is known to suit.
pub(super) fn describe(build: &Path, config: Config, toolchain: Toolchain) -> Result<Kernel> {
    let release = fs::read_to_string(build.join("include/config/kernel.release"))?;
    Ok(Kernel {
        build: build.to_path_buf(),
        source: source_of(build)?,
        release: release.trim().to_owned(),
        config,
        toolchain,
    })
}

/// `make` in the kernel's build folder, with the tools that it was built with.
pub fn make(kernel: &Kernel) -> Cmd {
    kernel.toolchain.make(&kernel.build)
}

/// The version of a source tree, from the first lines of its Makefile.
pub(super) fn source_version(source: &Path) -> Result<String> {
    let path = source.join("Makefile");
    let text = fs::read_to_string(&path)?;
    makefile_version(&text)
        .with_context(|| format!("{} names no VERSION and PATCHLEVEL", path.display()))
}

fn makefile_version(makefile: &str) -> Option<String> {
    let field = |name: &str| {
        makefile.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim())
        })
    };
    let sublevel = field("SUBLEVEL").unwrap_or("0");
    Some(format!(
        "{}.{}.{sublevel}",
        field("VERSION")?,
        field("PATCHLEVEL")?
    ))
}

/// Sees to it that the kernel in `source`, of this version, has what the drivers use.
///
/// # Errors
///
/// What it lacks.
pub(super) fn check_source(version: &str, source: &Path) -> Result<()> {
    let has = |file: &str, word: &str| {
        fs::read_to_string(source.join(file)).is_ok_and(|text| text.contains(word))
    };
    let lacks: Vec<_> = USED
        .iter()
        .filter(|(file, word)| !has(file, word))
        .map(|(file, word)| format!("{word} in {file}"))
        .collect();
    if lacks.is_empty() {
        return Ok(());
    }
    bail!(
        "the kernel in {} is {version}: it lacks what rigb uses, and Linux {FIRST} or newer has:\n  {}",
        source.display(),
        lacks.join("\n  ")
    );
}

fn check_rustc(built_with: &str, rustc: &Rustc, build: &Path) -> Result<()> {
    let built_with = built_with.trim_matches('"');
    if built_with != rustc.text {
        bail!(
            "the kernel in {} was built with `{built_with}`, and rustc here is `{}`: crate \
             metadata only fits the very same compiler. Use that one (`rustup override set …`) or \
             build the kernel anew with this one",
            build.display(),
            rustc.text
        );
    }
    Ok(())
}

/// The source that a build folder was built from: itself, its `source` link,
/// or the tree that its small Makefile includes.
fn source_of(build: &Path) -> Result<PathBuf> {
    let is_source = |dir: &Path| dir.join("rust/kernel/lib.rs").is_file();
    if is_source(build) {
        return Ok(build.to_path_buf());
    }
    if let Some(source) = build
        .join("source")
        .canonicalize()
        .ok()
        .filter(|dir| is_source(dir))
    {
        return Ok(source);
    }
    let makefile = fs::read_to_string(build.join("Makefile")).unwrap_or_default();
    let included = makefile
        .lines()
        .find_map(|line| line.strip_prefix("include "))
        .and_then(|path| Path::new(path.trim()).parent());
    match included {
        Some(source) if source.is_dir() => Ok(source.to_path_buf()),
        _ => bail!(
            "the source that {} was built from isn't there any more: put it back where its `source` \
             link or its Makefile says, or set KDIR alone, to a tree of source",
            build.display()
        ),
    }
}

fn folder(name: &str, given: &Path) -> Result<PathBuf> {
    match given.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        _ => bail!("{name}={} is no folder", given.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;

    fn args(kdir: Option<&Path>, output: Option<&Path>) -> KernelArgs {
        KernelArgs {
            kdir: kdir.map(Path::to_path_buf),
            kbuild_output: output.map(Path::to_path_buf),
            ..KernelArgs::default()
        }
    }

    fn message<T>(result: Result<T>) -> String {
        match result {
            Ok(_) => panic!("no error"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_version_is_read_from_the_makefile() {
        let text = "# SPDX\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n";
        assert_eq!(makefile_version(text).as_deref(), Some("7.3.4"));
        assert_eq!(makefile_version("all:\n\techo x=y\n"), None);
    }

    /// A source tree that has all that is used but `without`.
    fn tree(without: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, word) in USED.iter().filter(|(_, word)| *word != without) {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = fs::read_to_string(&path).unwrap_or_default();
            fs::write(&path, format!("{text}{word}\n")).unwrap();
        }
        dir
    }

    #[test]
    fn an_old_kernel_is_refused_with_what_it_lacks() {
        check_source("7.3.4", tree("").path()).unwrap();
        let text = message(check_source("7.2.12", tree("SpinLockIrq").path()));
        assert!(text.contains("7.2.12") && text.contains("7.3"), "{text}");
        assert!(
            text.ends_with("SpinLockIrq in rust/kernel/sync/lock/spinlock.rs"),
            "{text}"
        );
    }

    #[test]
    fn another_rustc_is_refused_with_both_versions() {
        let rustc = Rustc {
            text: "rustc 1.95.0 (59807616e 2026-04-14)".to_owned(),
            version: Version::new(1, 95, 0),
            verbose: String::new(),
        };
        check_rustc(
            "\"rustc 1.95.0 (59807616e 2026-04-14)\"",
            &rustc,
            Path::new("/k"),
        )
        .unwrap();
        let text = message(check_rustc("\"rustc 1.90.0 (x)\"", &rustc, Path::new("/k")));
        assert!(text.contains("1.90.0") && text.contains("1.95.0"), "{text}");
    }

    #[test]
    fn a_tree_is_told_apart_by_what_is_in_it() {
        let dir = tree("");
        let tree = dir.path();
        assert!(message(find(&args(Some(tree), None))).contains("no kernel tree"));
        assert!(message(find(&args(None, Some(tree)))).contains("no .config"));
        assert!(message(find(&args(Some(Path::new("/no/such")), None))).contains("KDIR=/no/such"));
        fs::write(tree.join("Kbuild"), "").unwrap();
        fs::write(tree.join("Makefile"), "VERSION = 7\nPATCHLEVEL = 3\n").unwrap();
        assert!(matches!(
            find(&args(Some(tree), None)),
            Ok(Found::Source(_))
        ));
        fs::write(tree.join(".config"), "").unwrap();
        assert!(matches!(find(&args(Some(tree), None)), Ok(Found::Built(_))));
        assert!(matches!(find(&args(None, Some(tree))), Ok(Found::Built(_))));
        assert!(matches!(find(&args(None, None)), Ok(Found::None)));
    }

    #[test]
    fn the_source_of_an_output_folder_is_found_through_its_makefile() {
        let dir = tempfile::tempdir().unwrap();
        let (source, build) = (dir.path().join("s"), dir.path().join("b"));
        // A build folder has the source's folders, with objects in them.
        fs::create_dir_all(source.join("rust/kernel")).unwrap();
        fs::write(source.join("rust/kernel/lib.rs"), "").unwrap();
        fs::create_dir_all(build.join("rust/kernel")).unwrap();
        assert!(message(source_of(&build)).contains("isn't there"));
        let line = format!("include {}/Makefile\n", source.display());
        fs::write(build.join("Makefile"), line).unwrap();
        assert_eq!(source_of(&build).unwrap(), source);
        assert_eq!(source_of(&source).unwrap(), source);
    }
}
