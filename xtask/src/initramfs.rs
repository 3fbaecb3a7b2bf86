// SPDX-License-Identifier: MIT OR Apache-2.0

//! The guest's initramfs: the agent as `/init`, the folders that it mounts on,
//! the console, and modules flat in `/lib/modules`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cpio::newc;
use fs_err as fs;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DATA: u32 = 0o100_644;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// The folders, parents first.
const FOLDERS: &[&str] = &["dev", "lib", "lib/modules", "proc", "run", "sys", "tmp"];

/// Writes an initramfs: not compressed, because unpacking would cost an
/// emulated processor more than reading; the same parts give the same bytes.
///
/// # Errors
///
/// When a part can't be read or the archive not written.
pub(crate) fn write(archive: &Path, init: &Path, modules: &[PathBuf]) -> Result<()> {
    let mut out = Vec::new();
    let mut inode = 0;
    let mut add = |out: &mut Vec<u8>, name: &str, mode: u32, data: &[u8]| -> Result<()> {
        inode += 1;
        let mut entry = newc::Builder::new(name).ino(inode).mode(mode).nlink(1);
        if mode == CHARACTER_DEVICE {
            // The kernel opens /dev/console before PID 1 mounts a devtmpfs.
            entry = entry.rdev_major(5).rdev_minor(1);
        }
        let size = u32::try_from(data.len()).with_context(|| format!("{name} is too large"))?;
        let mut writer = entry.write(out, size);
        writer.write_all(data)?;
        writer.finish()?;
        Ok(())
    };
    for folder in FOLDERS {
        add(&mut out, folder, FOLDER, &[])?;
    }
    add(&mut out, "dev/console", CHARACTER_DEVICE, &[])?;
    add(&mut out, "init", PROGRAM, &fs::read(init)?)?;
    for module in modules {
        let name = module
            .file_name()
            .with_context(|| format!("{} has no name", module.display()))?
            .to_string_lossy();
        let place = format!("lib/modules/{name}");
        add(&mut out, &place, DATA, &fs::read(module)?)?;
    }
    let out = newc::trailer(out)?;
    // Snapshots are of guests that booted just this file.
    if fs::read(archive).is_ok_and(|old| old == out) {
        return Ok(());
    }
    let new = archive.with_extension("new");
    fs::write(&new, out)?;
    Ok(fs::rename(&new, archive)?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn the_archive_has_init_the_console_and_flat_modules() {
        let dir = tempfile::tempdir().unwrap();
        let init = dir.path().join("agent");
        let module = dir.path().join("rigb.ko");
        fs::write(&init, "the agent").unwrap();
        fs::write(&module, "the module").unwrap();
        let archive = dir.path().join("initramfs.cpio");
        write(&archive, &init, &[module]).unwrap();

        let mut file = File::open(&archive).unwrap();
        let mut seen = Vec::new();
        loop {
            let reader = newc::Reader::new(file).unwrap();
            let entry = reader.entry();
            if entry.is_trailer() {
                break;
            }
            seen.push((
                entry.name().to_owned(),
                entry.mode(),
                entry.file_size(),
                (entry.rdev_major(), entry.rdev_minor()),
            ));
            file = reader.finish().unwrap();
        }
        let find = |name: &str| {
            seen.iter()
                .find(|e| e.0 == name)
                .unwrap_or_else(|| panic!("{name} not in {seen:?}"))
        };
        assert_eq!(find("init").1, PROGRAM);
        assert_eq!(find("init").2, 9);
        assert_eq!(find("dev/console").3, (5, 1));
        assert_eq!(find("lib/modules/rigb.ko").2, 10);
        let place = |name: &str| seen.iter().position(|e| e.0 == name).unwrap();
        assert!(
            place("lib/modules") < place("lib/modules/rigb.ko"),
            "{seen:?}"
        );
    }

    #[test]
    fn the_same_parts_give_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let init = dir.path().join("agent");
        fs::write(&init, "x").unwrap();
        let (a, b) = (dir.path().join("a.cpio"), dir.path().join("b.cpio"));
        write(&a, &init, &[]).unwrap();
        write(&b, &init, &[]).unwrap();
        assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap());
    }
}
