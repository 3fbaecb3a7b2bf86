// SPDX-License-Identifier: MIT OR Apache-2.0

//! The guest's kernel: where its source comes from, how it is configured and
//! built, and whether a user's own tree has what is needed.

pub mod args;
mod build;
mod built;
mod config;
mod flavour;
mod leftovers;
mod progress;
mod source;
mod toolchain;
mod tree;
mod wanted;

use anyhow::{Result, bail};

use crate::parallel;
use crate::project::Project;

pub use args::{KernelArgs, OfSeveral};
pub use built::Kernel;
pub use flavour::Flavour;
pub use source::{Source, fetch};
pub use tree::make;
pub use wanted::Use;

/// Whether the user's kernel is built already, so that none of ours can be built of its source.
///
/// # Errors
///
/// When there is no kernel where the user says.
pub fn is_built(project: &Project) -> Result<bool> {
    Ok(matches!(
        tree::find(&project.kernel)?,
        tree::Found::Built(_)
    ))
}

/// Whether the kernel is built already, by the user or in the cache.
///
/// # Errors
///
/// When there is no kernel where the user says, or a tool is missing.
pub fn is_ready(project: &Project) -> Result<bool> {
    match tree::find(&project.kernel)? {
        tree::Found::Built(_) => Ok(true),
        // make looks at it every time.
        tree::Found::Source(_) => Ok(false),
        tree::Found::None => {
            let source = source::fetch(project)?;
            build::is_cached(project, &source.dir, &source.version)
        }
    }
}

/// Takes the lean kernel, for the benchmark, unless the user named another.
///
/// # Errors
///
/// When there is no kernel where the user says.
pub fn for_figures(args: KernelArgs) -> Result<KernelArgs> {
    let ours = !matches!(tree::find(&args)?, tree::Found::Built(_));
    Ok(KernelArgs {
        lean: args.lean || ours && args.flavour() == Flavour::Plain,
        ..args
    })
}

/// Fetches the source of a kernel of ours, and what it is built with.
///
/// # Errors
///
/// When something can't be had.
pub fn fetch_all(project: &Project) -> Result<Source> {
    // Neither waits for the network, or for the disk, because the other does.
    let (source, ()) = parallel::both(|| source::fetch(project), || build::fetch_tools(project))?;
    Ok(source)
}

/// Finds or builds the kernel.
///
/// # Errors
///
/// What is missing, with the way out: see the messages of `tree` and `build`.
pub fn prepare(project: &Project, wanted: Use) -> Result<Kernel> {
    match tree::find(&project.kernel)? {
        tree::Found::Built(build) => match project.kernel.flavour().option() {
            Some(option) => bail!(
                "{option} builds a kernel with nobounce's configuration, and {} is built already: \
                 use it without {option}, or set KDIR alone to a source tree without a .config",
                build.display()
            ),
            None => tree::open(project, &build, wanted),
        },
        tree::Found::Source(source) => build::build(project, &source, None),
        tree::Found::None => {
            let source = fetch_all(project)?;
            tree::check_source(&source.version, &source.dir)?;
            build::build(project, &source.dir, Some(&source.version))
        }
    }
}
