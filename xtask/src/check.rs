// SPDX-License-Identifier: MIT OR Apache-2.0

//! `check` and `doc`: everything that can be said about the code without
//! running it, kernel side and user side. All checks run; the failures are
//! reported together.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use fs_err as fs;
use provision::files;

use crate::cmd::Cmd;
use crate::kernel::{self, Kernel, Use};
use crate::project::Project;
use crate::ui::Step;
use crate::{compile_fail, library, module, msrv, packages, spdx};

/// Runs all checks.
///
/// # Errors
///
/// When one of them finds something; all that failed are named.
pub(crate) fn run(project: &Project) -> Result<()> {
    packages::install_missing(project)?;
    let kernel = kernel::prepare(project, Use::Module)?;
    let mut failed = Vec::new();
    let mut note = |what: &'static str, result: Result<()>| {
        if let Err(error) = result {
            eprintln!("{what}: {error:#}\n");
            failed.push(what);
        }
    };
    note("licence headers", spdx_headers(project));
    note(
        "rustfmt of the kernel code",
        rustfmt_kernel(project, &kernel),
    );
    note("rustfmt", rustfmt_workspace(project));
    note("clippy of the kernel code", clippy_kernel(project, &kernel));
    note("panics in the kernel code", panics(project, &kernel));
    note(
        "misuse that must not compile",
        compile_fail::check(project, &kernel),
    );
    note("clippy", clippy_workspace(project));
    note("documentation", doc_workspace(project));
    note("examples in the documentation", library::examples(project));
    note("the library as a package", library::package(project));
    note("the oldest Rust", msrv::check(project));
    note(
        "documentation of the kernel code",
        doc_kernel(project, &kernel),
    );
    if !failed.is_empty() {
        bail!(
            "{} of the checks failed: {}",
            failed.len(),
            failed.join(", ")
        );
    }
    Ok(())
}

/// Builds the documentation of all crates.
///
/// # Errors
///
/// On any warning of rustdoc.
pub(crate) fn doc(project: &Project) -> Result<()> {
    packages::install_missing(project)?;
    let kernel = kernel::prepare(project, Use::Module)?;
    doc_workspace(project)?;
    doc_kernel(project, &kernel)
}

/// That of the user-space crates, and of those kernel crates that know no kernel.
fn doc_workspace(project: &Project) -> Result<()> {
    let step = Step::begin("doc", "rustdoc");
    // What follows documents the libraries once more, to the same place.
    library::documentation(project, &step)?;
    project
        .cargo()
        .args([
            "doc",
            "--workspace",
            "--exclude",
            library::TOOL,
            "--no-deps",
            "--document-private-items",
            "--features=devmem-tcp/serde,devmem-tcp/tokio",
        ])
        .env("RUSTDOCFLAGS", "-Dwarnings")
        .step(&step, &project.log("doc"))?;
    let place = project.target.join("doc");
    step.done(&place.display().to_string());
    Ok(())
}

/// That of all kernel crates, as Kbuild compiles them.
fn doc_kernel(project: &Project, kernel: &Kernel) -> Result<()> {
    let step = Step::begin("doc", "rustdoc, of the kernel code");
    let place = project.target.join("doc/kernel");
    let out = project.out("module");
    fs::create_dir_all(&out)?;
    module::make(&project.root, kernel, &out)
        .arg(format!("RUSTDOC_OUT={}", place.display()))
        .step(&step, &project.log("doc-kernel"))?;
    step.done(&place.display().to_string());
    Ok(())
}

/// Looks whether a module can panic: the compiler has then left a call to the core library's
/// panicking functions in it.
///
/// Only with our own configuration: overflow checks and debug assertions are such calls, too.
fn panics(project: &Project, kernel: &Kernel) -> Result<()> {
    let option = |name| kernel.config.get(name) == "y";
    if option("RUST_OVERFLOW_CHECKS") || option("RUST_DEBUG_ASSERTIONS") {
        return Ok(());
    }
    let modules = module::build(project, kernel)?;
    let step = Step::begin("panics", "symbols of the modules");
    for module in &modules {
        if let Some(symbol) = module::panics(module)? {
            bail!(
                "{} can panic: it refers to {symbol}; `objdump -drC` shows where",
                module.display()
            );
        }
    }
    step.done("the modules have no panicking path");
    Ok(())
}

fn spdx_headers(project: &Project) -> Result<()> {
    let step = Step::begin("spdx", "licence headers");
    spdx::check(&project.root)?;
    step.done("every file says its licence");
    Ok(())
}

/// As the kernel's own `make rustfmtcheck`: rustfmt on every file, with the
/// configuration of the tree that is built against.
fn rustfmt_kernel(project: &Project, kernel: &Kernel) -> Result<()> {
    let step = Step::begin("rustfmt", "kernel code");
    let config = kernel.source.join(".rustfmt.toml");
    if !config.is_file() {
        bail!("{} is missing from the kernel tree", config.display());
    }
    let mut files = Vec::new();
    rust_files(&project.root.join("drivers"), &mut files)?;
    Cmd::new("rustfmt")
        .args(["--check", "--config-path"])
        .arg(&config)
        .args(&files)
        .step(&step, &project.log("rustfmt-kernel"))?;
    step.done(&format!("{} files of kernel code", files.len()));
    Ok(())
}

fn rustfmt_workspace(project: &Project) -> Result<()> {
    cargo(project, "rustfmt", &["fmt", "--all", "--check"])
}

fn clippy_kernel(project: &Project, kernel: &Kernel) -> Result<()> {
    let step = Step::begin("clippy", "kernel code");
    // A folder of its own: what clippy compiles is not what rustc compiles.
    let out = project.out("module-clippy");
    fs::create_dir_all(&out)?;
    module::make(&project.root, kernel, &out)
        .args(["CLIPPY=1", "KRUSTFLAGS=-Dwarnings"])
        .step(&step, &project.log("clippy-kernel"))?;
    step.done("kernel code");
    Ok(())
}

fn clippy_workspace(project: &Project) -> Result<()> {
    let words = ["clippy", "--workspace", "--all-targets", "--", "-Dwarnings"];
    cargo(project, "clippy", &words)
}

/// Has cargo check the user-space code with this tool.
fn cargo(project: &Project, tool: &'static str, words: &[&str]) -> Result<()> {
    let step = Step::begin(tool, "user-space code");
    let command = project.cargo().args(words);
    command.step(&step, &project.log(tool))?;
    step.done("user-space code");
    Ok(())
}

/// All `.rs` files under a folder.
fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    for path in files::entries(dir)? {
        if path.is_dir() {
            rust_files(&path, into)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
    Ok(())
}
