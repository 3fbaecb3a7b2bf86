// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a kernel's build leaves behind that nothing reads afterwards: three quarters of its folder.
//! Modules, debuggers and guests need what was linked, and the headers; not the objects.

use std::io;
use std::path::Path;

use fs_err as fs;

/// Programs that run when a module is built are linked of few objects, and stay as they are.
const KEPT: [&str; 2] = ["scripts", "tools"];

/// Removes the objects of a finished build, their archives and commands, and what was linked on the
/// way to vmlinux. A build that goes on from here makes all of them again.
///
/// # Errors
///
/// When something can't be read or removed.
pub(super) fn remove(build: &Path) -> io::Result<()> {
    remove_below(build, &KEPT)
}

fn remove_below(folder: &Path, kept: &[&str]) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A link to a folder isn't one: `source` leads to the kernel's source.
        if !entry.file_type()?.is_dir() {
            if is_intermediate(&entry.path()) {
                fs::remove_file(entry.path())?;
            }
        } else if !kept.iter().any(|kept| entry.file_name() == *kept) {
            remove_below(&entry.path(), &[])?;
        }
    }
    Ok(())
}

fn is_intermediate(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default();
    ["o", "a", "cmd"].iter().any(|known| extension == *known)
        || name.starts_with(".tmp_vmlinux")
        || name == "vmlinux.unstripped"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_modules_and_debuggers_read_stays_and_objects_go() {
        let build = tempfile::tempdir().unwrap();
        let read = [
            "vmlinux",
            "Module.symvers",
            "net/devmem.ko",
            "rust/libkernel.rmeta",
            "scripts/module-common.o",
            "tools/objtool/objtool-in.o",
        ];
        let unread = [
            "vmlinux.o",
            "vmlinux.a",
            "vmlinux.unstripped",
            ".tmp_vmlinux1",
            "net/core/sock.o",
            "net/core/.sock.o.cmd",
        ];
        for name in read.iter().chain(&unread) {
            let path = build.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let source = tempfile::tempdir().unwrap();
        fs::write(source.path().join("of_the_source.o"), "").unwrap();
        std::os::unix::fs::symlink(source.path(), build.path().join("source")).unwrap();

        remove(build.path()).unwrap();

        let left = |names: &[&str]| -> BTreeSet<String> {
            let there = |name: &&&str| build.path().join(name).exists();
            names
                .iter()
                .filter(there)
                .map(|n| (*n).to_owned())
                .collect()
        };
        assert_eq!(left(&read), read.map(str::to_owned).into(), "what is read");
        assert_eq!(left(&unread), BTreeSet::new(), "what nothing reads");
        assert!(source.path().join("of_the_source.o").exists());
    }
}
