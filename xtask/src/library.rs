// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checks of the crate for others, devmem-tcp: what its users meet, and the workspace does not.

use anyhow::{Context, Result};

use crate::project::Project;
use crate::ui::Step;

const CRATE: &str = "devmem-tcp";
pub(crate) const TOOL: &str = "devmem-tcp-cli";
/// The tool, and what it is made of.
const PACKAGES: [&str; 4] = ["devmem-tcp-payload", CRATE, "ivshmem-mem", TOOL];
/// Features that must build alone, and what must build without any.
const FEATURES: &[(&str, &str)] = &[
    (CRATE, ""),
    (CRATE, "serde"),
    (CRATE, "tokio"),
    (CRATE, "zcrx"),
    (TOOL, ""),
];

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

/// Each feature builds alone, and all packages from their own archives, outside of the workspace.
pub(crate) fn package(project: &Project) -> Result<()> {
    let step = Step::begin("package", "devmem-tcp by itself");
    for (package, feature) in FEATURES {
        project
            .cargo()
            .args([
                "clippy",
                "-p",
                package,
                "--no-default-features",
                "--features",
                feature,
                "--",
                "-D",
                "warnings",
            ])
            .step(&step, &project.log("feature"))
            .with_context(|| format!("{package} with the feature \"{feature}\" alone"))?;
    }
    project
        .cargo()
        .args(["package", "--allow-dirty"])
        .args(packages())
        .step(&step, &project.log("package"))?;
    step.done("its features build alone, and it and its tool outside of the workspace");
    Ok(())
}

/// The libraries' documentation as users see it, without what is private; and the tool's, which has a
/// folder of its own: rustdoc names both `devmem_tcp`, and where cargo documents two crates of one name
/// at the same time, it removes the files of one while the other is written.
pub(crate) fn documentation(project: &Project, step: &Step) -> Result<()> {
    let doc = || {
        project
            .cargo()
            .env("RUSTDOCFLAGS", "-Dwarnings")
            .args(["doc", "--no-deps"])
    };
    let libraries = PACKAGES.iter().filter(|&&name| name != TOOL);
    doc()
        .arg("--all-features")
        .args(libraries.flat_map(|name| ["-p", *name]))
        .step(step, &project.log("public-doc"))?;
    doc()
        .args(["--document-private-items", "-p", TOOL, "--target-dir"])
        .arg(project.target.join("tool"))
        .step(step, &project.log("tool-doc"))
}

/// cargo's words for them.
fn packages() -> impl Iterator<Item = &'static str> {
    PACKAGES.iter().flat_map(|name| ["-p", *name])
}
