// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checks of the crate for others, devmem-tcp: what its users meet, and the workspace does not.

use anyhow::{Context, Result};

use crate::msrv;
use crate::project::Project;
use crate::ui::Step;

const CRATE: &str = "devmem-tcp";
/// Its features, each of which must build alone.
const FEATURES: &[&str] = &["", "serde", "tokio", "zcrx"];

/// The examples of its documentation compile, and those that may run do.
pub(crate) fn examples(project: &Project) -> Result<()> {
    let step = Step::begin("examples", "those of the documentation");
    project
        .cargo()
        .args(["test", "--doc", "--all-features", "-p", CRATE])
        .step(&step, &project.log("doctest"))?;
    step.done("the documentation's examples compile");
    Ok(())
}

/// Each feature builds alone, all of them with the oldest Rust, and the package from its own archive,
/// outside of the workspace.
pub(crate) fn package(project: &Project) -> Result<()> {
    let step = Step::begin("package", "devmem-tcp by itself");
    for feature in FEATURES {
        project
            .cargo()
            .args([
                "clippy",
                "-p",
                CRATE,
                "--no-default-features",
                "--features",
                feature,
                "--",
                "-D",
                "warnings",
            ])
            .step(&step, &project.log("feature"))
            .with_context(|| format!("the feature \"{feature}\" alone"))?;
    }
    let target = project.target.join("msrv");
    project
        .cargo()
        .args(["check", "-p", CRATE, "--all-features", "--target-dir"])
        .arg(&target)
        .env("RUSTC", msrv::rustc(project)?)
        .step(&step, &project.log("msrv"))
        .context("with the oldest Rust that Cargo.toml promises")?;
    project
        .cargo()
        .args(["package", "-p", CRATE, "--allow-dirty"])
        .step(&step, &project.log("package"))?;
    step.done("its features build alone, and the package outside of the workspace");
    Ok(())
}
