// SPDX-License-Identifier: MIT OR Apache-2.0

//! Every file says its licence in its first lines, and the licence is the one
//! of the part that the file belongs to.

use std::path::Path;

use anyhow::{Result, bail};
use fs_err as fs;

use crate::cmd::Cmd;

const KERNEL: &str = "GPL-2.0";
/// What programs include to talk to a driver.
const UAPI: &str = "GPL-2.0 WITH Linux-syscall-note";
const BOTH: &str = "GPL-2.0 OR MIT";
const USER: &str = "MIT OR Apache-2.0";

/// Checks all files that git knows.
///
/// # Errors
///
/// Names every file whose header is missing or wrong.
pub(crate) fn check(root: &Path) -> Result<()> {
    let tracked = Cmd::new("git")
        .args(["ls-files", "-z"])
        .dir(root)
        .output()?;
    let mut wrong = Vec::new();
    for name in tracked.split('\0').filter(|name| needs_header(name)) {
        let Ok(text) = fs::read_to_string(root.join(name)) else {
            // Deleted in the work tree, or no text.
            continue;
        };
        let expected = expected(name);
        match header(&text) {
            Some(found) if found == expected => {}
            Some(found) => wrong.push(format!("{name}: `{found}` instead of `{expected}`")),
            None => wrong.push(format!("{name}: no `SPDX-License-Identifier: {expected}`")),
        }
    }
    if !wrong.is_empty() {
        bail!(
            "files with a wrong licence header:\n  {}",
            wrong.join("\n  ")
        );
    }
    Ok(())
}

/// Documentation, generated files, and formats without comments have none.
fn needs_header(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    let without = [
        "md",
        "txt",
        "lock",
        "json",
        "svg",
        "png",
        "proptest-regressions",
        "txt",
    ];
    !(name.is_empty()
        || name.starts_with("LICENSES/")
        || base == ".gitignore"
        || base.starts_with("LICENSE")
        || base
            .rsplit_once('.')
            .is_some_and(|(_, extension)| without.contains(&extension)))
}

fn expected(name: &str) -> &'static str {
    // What the device is, for its driver and its model.
    if name.starts_with("drivers/i82576/") || name.starts_with("drivers/engine/") {
        BOTH
    } else if name == "drivers/ivshmem_mem/ivshmem_mem.h"
        || name == "drivers/copy_engine/copy_engine.h"
    {
        UAPI
    } else if name.starts_with("drivers/") || name.starts_with("qemu/kernel/") || name == "Kbuild" {
        KERNEL
    } else {
        USER
    }
}

fn header(text: &str) -> Option<&str> {
    text.lines().take(3).find_map(|line| {
        let (_, found) = line.split_once("SPDX-License-Identifier:")?;
        Some(found.trim_end_matches("*/").trim_end_matches("-->").trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_found_in_every_kind_of_comment() {
        for text in [
            "// SPDX-License-Identifier: GPL-2.0\n",
            "#!/bin/bash\n# SPDX-License-Identifier: GPL-2.0\n",
            "/* SPDX-License-Identifier: GPL-2.0 */\n",
            "<!-- SPDX-License-Identifier: GPL-2.0 -->",
        ] {
            assert_eq!(header(text), Some("GPL-2.0"), "{text}");
        }
        assert_eq!(header("fn main() {}\n"), None);
        assert_eq!(header("\n\n\n// SPDX-License-Identifier: GPL-2.0"), None);
    }

    #[test]
    fn each_part_has_its_licence() {
        assert_eq!(expected("drivers/rigb/rx.rs"), KERNEL);
        assert_eq!(expected("Kbuild"), KERNEL);
        assert_eq!(expected("drivers/ivshmem_mem/memory.rs"), KERNEL);
        assert_eq!(expected("drivers/ivshmem_mem/ivshmem_mem.h"), UAPI);
        assert_eq!(expected("drivers/i82576/rx.rs"), BOTH);
        assert_eq!(expected("harness/vm/src/lib.rs"), USER);
        assert_eq!(expected("Makefile"), USER);
    }

    #[test]
    fn only_files_that_can_have_a_comment_need_one() {
        for name in ["README.md", "LICENSES/MIT", "Cargo.lock", ".gitignore", ""] {
            assert!(!needs_header(name), "{name}");
        }
        for name in [
            "Makefile",
            ".ci/run",
            "xtask/src/main.rs",
            ".config/nextest.toml",
        ] {
            assert!(needs_header(name), "{name}");
        }
    }
}
