// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a build needs of Rust beside cargo: cargo-nextest, and the source of the core library that
//! the kernel compiles.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::apt::Apt;
use crate::cmd::{Cmd, cargo, find_on_path};
use crate::project::Project;
use crate::ui::Step;
use crate::version::Version;

/// The user's program, if it is new enough.
pub fn users(program: &str, arguments: &[&str], oldest: Version) -> Option<PathBuf> {
    let program = find_on_path(program)?;
    let said = Cmd::new(&program).args(arguments).output().ok()?;
    (Version::find(&said)? >= oldest).then_some(program)
}

/// The oldest cargo-nextest that tells a test its name, which skipped cases report.
const MIN_NEXTEST: Version = Version::new(0, 9, 116);
/// What is installed where there is none.
const NEXTEST: &str = "0.9.143";

/// Where our own is in the cache.
fn nextest_place() -> String {
    format!("tools/cargo-nextest-{NEXTEST}")
}

/// The cargo-nextest that is there.
pub fn find_nextest(project: &Project) -> Option<PathBuf> {
    users("cargo-nextest", &["nextest", "--version"], MIN_NEXTEST).or_else(|| {
        let place = project.cache.path(&nextest_place());
        place.is_dir().then(|| place.join("bin/cargo-nextest"))
    })
}

/// The cargo-nextest to use: the user's, else our own in the cache.
///
/// # Errors
///
/// When `cargo install` fails.
pub fn nextest(project: &Project) -> Result<PathBuf> {
    if let Some(found) = find_nextest(project) {
        return Ok(found);
    }
    // Without its self-updater, and so without a TLS library in C.
    let features = ["--no-default-features", "--features=default-no-update"];
    let step = Step::begin("tools", &format!("cargo install cargo-nextest {NEXTEST}"));
    let place = project.cache.once(&nextest_place(), |work| {
        let target = project.cache.scratch("cargo-nextest-target")?;
        cargo()
            .args(["install", "cargo-nextest", "--locked"])
            .args(["--version", NEXTEST, "--root"])
            .arg(work)
            .args(features)
            .env("CARGO_TARGET_DIR", &target)
            .step(&step, &project.log("cargo-nextest"))
    })?;
    step.done(&format!("cargo-nextest {NEXTEST} installed"));
    Ok(place.join("bin/cargo-nextest"))
}

/// rustc as the kernel build sees it.
pub struct Rustc {
    /// `rustc --version`, as `CONFIG_RUSTC_VERSION_TEXT` has it.
    pub text: String,
    /// The same as a number.
    pub version: Version,
    /// `rustc -vV`: everything that tells two compilers apart.
    pub verbose: String,
}

/// Asks rustc for its version.
///
/// # Errors
///
/// When there is no rustc, or one that is older than the kernel takes.
pub fn rustc() -> Result<Rustc> {
    const MIN_RUSTC: Version = Version::new(1, 85, 0);
    let verbose = Cmd::new("rustc").arg("-vV").output()?;
    let text = verbose.lines().next().unwrap_or_default().to_owned();
    let version = Version::find(&text)
        .with_context(|| format!("`rustc -vV` names no version but `{text}`"))?;
    if version < MIN_RUSTC {
        bail!("{text} is too old: the kernel takes {MIN_RUSTC} or newer (`rustup update stable`)");
    }
    Ok(Rustc {
        text,
        version,
        verbose,
    })
}

/// The source of the core library for `RUST_LIB_SRC`: `$RUST_LIB_SRC`, else
/// what the toolchain has, else Debian's package of the same version, which is
/// unpacked into the cache.
///
/// # Errors
///
/// When none of them has it; the way out is in the message.
pub fn rust_lib_src(project: &Project, rustc: &Rustc) -> Result<PathBuf> {
    match find_rust_lib_src(project)? {
        Some(found) => Ok(found),
        None => fetch_rust_lib_src(project, rustc),
    }
}

/// The same, if it is there.
///
/// # Errors
///
/// When `$RUST_LIB_SRC` has it not, or there is no rustc.
pub fn find_rust_lib_src(project: &Project) -> Result<Option<PathBuf>> {
    if let Some(given) = std::env::var_os("RUST_LIB_SRC") {
        let given = PathBuf::from(given);
        if !given.join("core/src/lib.rs").is_file() {
            bail!(
                "RUST_LIB_SRC={} has no core/src/lib.rs: it must name the `library` folder of \
                 Rust's source",
                given.display()
            );
        }
        return Ok(Some(given));
    }
    let sysroot = Cmd::new("rustc").args(["--print", "sysroot"]).output()?;
    let component = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    if component.join("core/src/lib.rs").is_file() {
        return Ok(Some(component));
    }
    let unpacked = project.cache.path(&rust_src_name(&rustc()?));
    Ok(unpacked.is_dir().then_some(unpacked))
}

fn rust_src_name(rustc: &Rustc) -> String {
    format!("rust-src/{}", rustc.version)
}

fn fetch_rust_lib_src(project: &Project, rustc: &Rustc) -> Result<PathBuf> {
    let version = rustc.version;
    let name = rust_src_name(rustc);
    let step = Step::begin("rust-src", &format!("core library source of {version}"));
    let apt = Apt::new(project);
    let offers = apt.offers(&step, "rust-src")?;
    let Some(offer) = offers
        .iter()
        .find(|offer| Version::find(offer) == Some(version))
    else {
        bail!(
            "no source of the core library for {}: the toolchain has no rust-src component and \
             Debian offers only [{}]; `rustup component add rust-src` adds it, or set \
             RUST_LIB_SRC to the `library` folder of Rust's source",
            rustc.text,
            offers.join(", ")
        );
    };
    let package = project.cache.scratch("rust-src-package")?;
    apt.unpack(&step, &project.cache, "rust-src", Some(offer), &package)?;
    let place = project.cache.once(&name, |work| {
        // Of 400 MB the kernel compiles a part of `library`.
        let library = package.join(format!("usr/src/rustc-{version}/library"));
        if !library.join("core/src/lib.rs").is_file() {
            bail!("the package rust-src {offer} has no core library");
        }
        Ok(fs::rename(&library, work)?)
    })?;
    fs::remove_dir_all(&package)?;
    step.done(&format!("rust-src {offer} unpacked"));
    Ok(place)
}
