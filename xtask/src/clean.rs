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
    let _lock = project.lock_target()?;
    let step = Step::begin("clean", "removing target/");
    cache::remove_dir(&project.target)?;
    let mut removed = project.target.display().to_string();
    if with_cache {
        step.detail("removing the cache");
        project.cache.clear()?;
        removed = format!("{removed} and {}", project.cache.dir().display());
    }
    step.done(&format!("removed {removed}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::kernel::KernelArgs;

    #[test]
    fn what_was_built_goes_and_the_cache_only_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project {
            root: dir.path().join("checkout"),
            target: dir.path().join("checkout/target"),
            cache: Cache::at(dir.path().join("cache")),
            kernel: KernelArgs::default(),
        };
        let source = project.root.join("Makefile");
        let built = project.out("module");
        let cached = project.cache.path("kernel");
        for folder in [&built, &cached] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(&source, "").unwrap();

        run(&project, false).unwrap();
        assert!(!built.exists() && cached.exists() && source.exists());
        run(&project, true).unwrap();
        assert!(!cached.exists() && source.exists());
    }
}
