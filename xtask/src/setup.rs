// SPDX-License-Identifier: MIT OR Apache-2.0

//! `setup`: everything that the other commands would install on their way.

use anyhow::Result;

use crate::project::Project;
use crate::{bindgen, packages, tools, ui};

/// Installs what is missing.
///
/// # Errors
///
/// Names what can't be installed, with the way out.
pub(crate) fn run(project: &Project) -> Result<()> {
    packages::install_missing(project)?;
    let rustc = tools::rustc()?;
    let bindgen = bindgen::prepare(project)?;
    let library = tools::rust_lib_src(project, &rustc)?;
    let nextest = tools::nextest(project)?;
    ui::note(&rustc.text);
    ui::note(&format!("bindgen: {}", bindgen.command.display()));
    ui::note(&format!("core library source: {}", library.display()));
    ui::note(&format!("cargo-nextest: {}", nextest.display()));
    Ok(())
}
