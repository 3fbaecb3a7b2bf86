// SPDX-License-Identifier: MIT OR Apache-2.0

//! `clean`: removes what was built.

use anyhow::Result;

use crate::cache;
use crate::project::Project;
use crate::ui::Step;

/// Removes `target/`, and the user's cache when asked.
///
/// # Errors
///
/// When something can't be removed.
pub(crate) fn run(project: &Project, with_cache: bool) -> Result<()> {
    let step = Step::begin("clean", "removing target/");
    let target = project.root.join("target");
    cache::remove_dir(&target)?;
    let mut removed = target.display().to_string();
    if with_cache {
        step.detail("removing the cache");
        project.cache.clear()?;
        removed = format!("{removed} and {}", project.cache.dir().display());
    }
    step.done(&format!("removed {removed}"));
    Ok(())
}
