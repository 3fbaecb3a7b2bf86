// SPDX-License-Identifier: MIT OR Apache-2.0

//! Guests of the lab that run: a folder for each, which is locked as long as its guest runs.

use std::env;
use std::fs::{DirBuilder, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err::{self as fs, File};
use rustix::fs::{FlockOperation, flock};
use rustix::process::getuid;
use serde::{Deserialize, Serialize};

/// What a guest is called that the user gives no name.
const NAME: &str = "lab";
/// The socket in a guest's folder for those who enter.
const DOOR: &str = "door";
/// The file in a guest's folder that says what it is.
const ABOUT: &str = "about.json";

/// A guest's folder. Dropping it removes it.
pub(super) struct Running {
    folder: PathBuf,
    _lock: File,
}

/// What the list says of a guest.
#[derive(Serialize, Deserialize)]
struct About {
    pid: u32,
    command: String,
}

impl Running {
    /// Makes a folder for a guest of this name, or of one that no other has.
    ///
    /// # Errors
    ///
    /// When the name is taken, or nothing can be written where such folders are.
    pub(super) fn create(name: Option<&str>, command: &str) -> Result<Self> {
        Self::create_in(&base()?, name, command)
    }

    fn create_in(base: &Path, name: Option<&str>, command: &str) -> Result<Self> {
        let _alone = alone(base)?;
        if let Some(name) = name {
            if name.is_empty() || name.contains('/') || name.starts_with('.') {
                bail!(
                    "a guest can't be called `{name}`: a name begins with no dot and has no slash"
                );
            }
            let Some(running) = Self::lock(&base.join(name))? else {
                bail!("a guest named {name} runs already: see `nobounce ls`");
            };
            return running.describe(command);
        }
        let numbered = (2..).map(|number| format!("{NAME}-{number}"));
        for name in std::iter::once(NAME.to_owned()).chain(numbered) {
            if let Some(running) = Self::lock(&base.join(name))? {
                return running.describe(command);
            }
        }
        unreachable!("there is always another number")
    }

    /// Locks a folder, which it makes. None while a guest has it.
    fn lock(folder: &Path) -> Result<Option<Self>> {
        loop {
            make(folder)?;
            let file = match File::open(folder) {
                // Its last guest may remove it at any moment.
                Err(error) if error.kind() == ErrorKind::NotFound && !folder.is_symlink() => {
                    continue;
                }
                opened => opened?,
            };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Ok(None);
            }
            let inode = |meta: Metadata| (meta.dev(), meta.ino());
            let (mine, there) = (file.metadata().map(inode), fs::metadata(folder).map(inode));
            if mine.is_ok_and(|mine| there.is_ok_and(|there| mine == there)) {
                return Ok(Some(Self {
                    folder: folder.to_owned(),
                    _lock: file,
                }));
            }
        }
    }

    fn describe(self, command: &str) -> Result<Self> {
        // What a guest left that was killed.
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            fs::remove_file(&path)?;
        }
        let about = About {
            pid: std::process::id(),
            command: command.to_owned(),
        };
        let path = self.path(ABOUT);
        fs::write(&path, serde_json::to_string(&about)?)?;
        Ok(self)
    }

    /// What users call it.
    pub(super) fn name(&self) -> String {
        name_of(&self.folder)
    }

    /// A file of this name in its folder.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Where those knock who want to enter.
    pub(super) fn listen(&self) -> Result<UnixListener> {
        let path = self.path(DOOR);
        UnixListener::bind(&path).with_context(|| format!("can't make {}", path.display()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If it stays, the next guest of this name, or the next list, removes it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Who looks at other guests' folders or makes one does it alone: to see whether a guest has a folder,
/// it is locked for a moment.
fn alone(base: &Path) -> Result<File> {
    let file = File::open(base)?;
    flock(&file, FlockOperation::LockExclusive)
        .with_context(|| format!("can't lock {}", base.display()))?;
    Ok(file)
}

/// The names of the guests that run, in their order, each with a line about it.
fn list(base: &Path) -> Result<Vec<(String, About)>> {
    let _alone = alone(base)?;
    let mut guests = Vec::new();
    for entry in fs::read_dir(base)? {
        let folder = entry?.path();
        // One that no guest has is removed.
        if !folder.is_dir() || Running::lock(&folder)?.is_some() {
            continue;
        }
        let text = fs::read_to_string(folder.join(ABOUT)).unwrap_or_default();
        if let Ok(about) = serde_json::from_str(&text) {
            guests.push((name_of(&folder), about));
        }
    }
    guests.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(guests)
}

/// Prints the guests that run.
pub(crate) fn print_list() -> Result<()> {
    for (name, about) in list(&base()?)? {
        println!("{name}\t{}\t{}", about.pid, about.command);
    }
    Ok(())
}

/// Connects to a guest, which need not be named if only one runs.
pub(super) fn connect(name: Option<&str>) -> Result<UnixStream> {
    let base = base()?;
    let name = match (name, list(&base)?.as_slice()) {
        (Some(name), _) => name.to_owned(),
        (None, [(name, _)]) => name.clone(),
        (None, []) => bail!("no guest runs: start one with `nobounce shell` or `nobounce exec`"),
        (None, several) => {
            let names: Vec<_> = several.iter().map(|(name, _)| name.as_str()).collect();
            bail!("several guests run, name one of them: {}", names.join(", "))
        }
    };
    let door = base.join(&name).join(DOOR);
    UnixStream::connect(&door).with_context(|| {
        format!("no guest named {name} runs, or it is still booting: see `nobounce ls`")
    })
}

/// The folder of the guests' folders, which is the user's alone.
fn base() -> Result<PathBuf> {
    let session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let base = match session.filter(|folder| folder.is_dir()) {
        Some(folder) => folder.join("nobounce"),
        None => env::temp_dir().join(format!("nobounce-{}", getuid().as_raw())),
    };
    make(&base)?;
    let owner = fs::symlink_metadata(&base)?;
    if owner.uid() != getuid().as_raw() || !owner.is_dir() {
        bail!(
            "{} is somebody else's: set XDG_RUNTIME_DIR to a folder of yours",
            base.display()
        );
    }
    Ok(base)
}

/// Makes a folder unless it is there. (`DirBuilder`'s recursive mode looks again whether it is there,
/// and fails if it was removed in between.)
fn make(folder: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.with_context(|| format!("can't make {}", folder.display())),
    }
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_folder_is_one_guests_until_it_ends_and_what_was_left_in_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("mine");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("left"), "by a killed guest").unwrap();

        let running = Running::lock(&folder).unwrap().unwrap();
        let running = running.describe("sleep").unwrap();
        assert!(!folder.join("left").exists() && running.path(ABOUT).exists());
        assert!(Running::lock(&folder).unwrap().is_none());
        drop(running);
        assert!(!folder.exists());
        assert!(Running::lock(&folder).unwrap().is_some());
    }

    #[test]
    fn guests_begin_and_end_while_others_list_them() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        let (killed, about) = (base.join("killed"), r#"{"pid": 1, "command": "true"}"#);
        let beginning = AtomicBool::new(true);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while beginning.load(Ordering::Relaxed) {
                        // The other one may remove what it has left meanwhile.
                        let _ = fs::create_dir(&killed);
                        let _ = fs::write(killed.join(ABOUT), about);
                        let listed = list(base).unwrap();
                        assert!(listed.iter().all(|(name, _)| name == "guest"));
                    }
                });
            }
            let _end = End(&beginning);
            for _ in 0..2000 {
                Running::create_in(base, Some("guest"), "true").unwrap();
            }
        });
    }

    /// Has others end, even after a failure.
    struct End<'a>(&'a AtomicBool);

    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_name_that_is_no_file_name_is_refused() {
        for name in ["", "a/b", ".."] {
            assert!(Running::create(Some(name), "true").is_err());
        }
    }
}
