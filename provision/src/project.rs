// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where things are: the checkout, what is built in it, and the user's cache.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::built_in::CHECKOUT;
use crate::cache::Cache;
use crate::cmd::{self, Cmd};
use crate::hash;
use crate::kernel::args::KernelArgs;
use crate::lock::Lock;
use crate::program;

/// What every step is given: the checkout, the cache, and which kernel to use.
pub struct Project {
    /// The checkout: the folder with the root `Cargo.toml` and `Kbuild`. It may be read-only.
    pub root: PathBuf,
    /// Where what is built of it goes: `target/` for `cargo xtask`; in the cache for `nobounce`,
    /// which may be run by users to whom the checkout doesn't belong.
    pub target: PathBuf,
    /// The user's cache folder.
    pub cache: Cache,
    /// The kernel that was asked for on the command line or in the environment.
    pub kernel: KernelArgs,
}

/// While this is held, no other run makes anything in the target folder, nor clears the cache.
pub struct Locked {
    _target: Lock,
    _cache: Lock,
}

impl Project {
    /// Finds the checkout and opens the cache.
    ///
    /// # Errors
    ///
    /// When Kbuild couldn't work in either folder (it splits paths at white
    /// space and colons), or no cache folder can be named or made.
    pub fn open(kernel: KernelArgs) -> Result<Self> {
        let root = root()?;
        kbuild_can_use(&root, "move the checkout")?;
        let cache = Cache::open()?;
        kbuild_can_use(cache.dir(), "set XDG_CACHE_HOME to another folder")?;
        let project = Self {
            target: target(&root, &cache),
            root,
            cache,
            kernel,
        };
        let logs = project.out("logs");
        fs::create_dir_all(&logs)?;
        Ok(project)
    }

    /// Waits until no other run makes anything in the target folder.
    ///
    /// # Errors
    ///
    /// When a lock can't be had.
    pub fn lock(&self) -> Result<Locked> {
        Ok(Locked {
            _target: self.lock_target()?,
            _cache: self.cache.keep()?,
        })
    }

    /// As [`Self::lock`], without the cache.
    ///
    /// # Errors
    ///
    /// When the lock can't be had.
    pub fn lock_target(&self) -> Result<Lock> {
        let what = self.target.display().to_string();
        Lock::hold(&self.target.join("nobounce/lock"), &what)
    }

    /// A file or folder that is made for the kernel in question.
    pub fn out(&self, name: &str) -> PathBuf {
        let ours = self.target.join("nobounce");
        ours.join(self.kernel.folder()).join(name)
    }

    /// The cargo that runs us, for the packages of the checkout.
    pub fn cargo(&self) -> Cmd {
        self.built_here(cmd::cargo())
    }

    /// Has a command that builds packages of the checkout run in it, and build where we do.
    pub fn built_here(&self, command: Cmd) -> Cmd {
        command
            .dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
    }

    /// The log of one step.
    pub fn log(&self, step: &str) -> PathBuf {
        self.out("logs").join(format!("{step}.log"))
    }
}

fn target(root: &Path, cache: &Cache) -> PathBuf {
    if program::by_cargo() {
        return root.join("target");
    }
    let name = hash::of_parts(&[&root.to_string_lossy()]);
    cache.path("checkouts").join(&name[..16])
}

/// The checkout: the one that cargo runs this in, which may have been moved or copied with what was
/// built in it; without cargo, the one that this was built in.
///
/// # Errors
///
/// When there is none any more.
pub fn root() -> Result<PathBuf> {
    let running = program::folder_of_cargo();
    let running = running.as_deref().and_then(Path::parent);
    let mut roots = running.into_iter().chain([Path::new(CHECKOUT)]);
    roots
        .find(|root| root.join("Kbuild").is_file())
        // Without a slash at its end.
        .map(|root| root.components().collect())
        .with_context(|| {
            format!("there is no checkout in {CHECKOUT} any more: run `make install` in another")
        })
}

fn kbuild_can_use(path: &Path, way_out: &str) -> Result<()> {
    let text = path.to_string_lossy();
    if text.contains(|c: char| c.is_whitespace() || c == ':' || c == '%') {
        bail!(
            "Kbuild can't work in `{text}`: it splits paths at white space, `:` and `%`; {way_out}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_kbuild_would_split_is_refused_with_the_way_out() {
        for bad in ["/home/a b/x", "/x:y", "/50%/x"] {
            let error = kbuild_can_use(Path::new(bad), "move it").unwrap_err();
            assert!(error.to_string().contains("move it"), "{error}");
        }
        kbuild_can_use(Path::new("/home/me/src"), "").unwrap();
    }
}
