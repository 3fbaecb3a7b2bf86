// SPDX-License-Identifier: MIT OR Apache-2.0

//! The program with our models of devices.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::project::Project;
use crate::ui::Step;

/// Builds it.
///
/// # Errors
///
/// When cargo fails.
pub(crate) fn build(project: &Project) -> Result<PathBuf> {
    let step = Step::begin("devices", "building the models of devices");
    project
        .cargo()
        .args(["build", "--package", "device"])
        .arg("--target-dir")
        .arg(&project.target)
        .step(&step, &project.log("devices"))?;
    let program = project.target.join("debug/nobounce-device");
    if !program.is_file() {
        bail!("cargo built no {}", program.display());
    }
    step.done(&program.display().to_string());
    Ok(program)
}
