// SPDX-License-Identifier: MIT OR Apache-2.0

//! clang and its tools for the debug kernel: Debian's packages, unpacked in
//! the cache and run through their own loader. The kernel's build calls them
//! by name, so each is a small script.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use crate::apt::Apt;
use crate::files;
use crate::hash;
use crate::project::Project;
use crate::unpacked::{Packages, loader, write_program};

/// LLVM's major version: the one that rustc is built on now.
macro_rules! major {
    () => {
        "22"
    };
}
/// Its major version.
pub const MAJOR: &str = major!();
/// The package with its libclang alone.
pub const LIBCLANG: &str = concat!("libclang1-", major!());
/// Debian's packages: 120 MB, and what they unpack to.
const PACKAGES: Packages = Packages {
    what: "clang",
    folder: "llvm",
    suites: Apt::new,
    names: &[
        concat!("clang-", major!()),
        concat!("lld-", major!()),
        concat!("llvm-", major!()),
    ],
    alone: None,
    version: concat!(major!(), "."),
    space: 800_000_000,
    not_needed: &[
        "etc",
        "usr/bin",
        "usr/include",
        "usr/lib/gcc",
        "usr/lib/x86_64-linux-gnu/gconv",
        "usr/libexec",
        "usr/share",
        "var",
    ],
};
/// What runs, and the variable of Kbuild that names it.
const TOOLS: &[(&str, &str)] = &[
    ("CC", "clang"),
    ("LD", "ld.lld"),
    ("AR", "llvm-ar"),
    ("NM", "llvm-nm"),
    ("OBJCOPY", "llvm-objcopy"),
    ("OBJDUMP", "llvm-objdump"),
    ("READELF", "llvm-readelf"),
    ("STRIP", "llvm-strip"),
    ("LLVM_LINK", "llvm-link"),
];
/// What the links among the tools lead to.
const BEHIND_LINKS: &[&str] = &["lld", "llvm-readobj"];
/// Where the script for bindgen finds the program.
pub const BINDGEN_ENV: &str = "NOBOUNCE_BINDGEN";

/// An LLVM in the cache.
pub struct Llvm {
    root: PathBuf,
    /// `clang --version`.
    pub version: String,
}

impl Llvm {
    /// Kbuild's variables for its tools. Not `LLVM=`: that would build what
    /// runs on the host with them, too.
    pub fn make_variables(&self) -> Vec<String> {
        let tools = TOOLS.iter().chain(&[("BINDGEN", "bindgen")]);
        tools
            .map(|(variable, tool)| format!("{variable}={}", self.script(tool).display()))
            .collect()
    }

    /// clang, which also compiles for BPF.
    pub fn clang(&self) -> PathBuf {
        self.script("clang")
    }

    fn script(&self, tool: &str) -> PathBuf {
        self.root.join("bin").join(tool)
    }
}

/// The LLVM in the cache, unpacked on first use.
///
/// # Errors
///
/// No apt, no network, no space: see [`Packages::get`]; a clang that doesn't run.
pub fn prepare(project: &Project) -> Result<Llvm> {
    let root = PACKAGES.get(project, &tools_key(), |work| {
        remove_other_tools(&work.join(format!("usr/lib/llvm-{MAJOR}/bin")))?;
        write_scripts(&work.join("bin"))
    })?;
    let version = PACKAGES.version(&root, "bin/clang")?;
    // The other lines name folders.
    let version = version.lines().next().unwrap_or_default().to_owned();
    Ok(Llvm { root, version })
}

/// What tells an LLVM with these tools from one with others.
fn tools_key() -> String {
    let tools: Vec<_> = TOOLS.iter().map(|(_, tool)| *tool).collect();
    format!("-{}", &hash::of_parts(&tools)[..8])
}

fn remove_other_tools(bin: &Path) -> Result<()> {
    for path in files::entries(bin)? {
        let name = path.file_name().unwrap_or_default();
        let wanted = TOOLS.iter().map(|(_, tool)| tool).chain(BEHIND_LINKS);
        if !wanted.into_iter().any(|wanted| name == *wanted) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Writes a script for each tool, and one for bindgen: it loads libclang,
/// which must know the flags of this clang.
fn write_scripts(bin: &Path) -> Result<()> {
    fs::create_dir_all(bin)?;
    let write = |name: &str, text: String| write_program(&bin.join(name), &text);
    for (_, tool) in TOOLS {
        let prepare = if *tool == "clang" {
            clang()
        } else {
            String::new()
        };
        let run = run(&format!(r#"--argv0 "$0" "$llvm/bin/{tool}""#));
        write(tool, format!("{}{prepare}{run}", head()))?;
    }
    let bindgen = format!(
        "export LIBCLANG_PATH=\"$llvm/lib\"\n{}",
        run(&format!(r#""${{{BINDGEN_ENV}:?}}""#))
    );
    write("bindgen", format!("{}{bindgen}", head()))
}

/// clang takes its own program for the loader: it needs to be told where its headers
/// are, and runs itself by the name that it was called by.
fn clang() -> String {
    format!(
        "case $1 in\n-cc1*) ;;\n*) set -- -no-canonical-prefixes \\\n\t-resource-dir=\
         \"$llvm/lib/clang/{MAJOR}\" \"$@\" ;;\nesac\n"
    )
}

/// Scripts find their packages from where they are: their folder is moved into
/// place when it is whole.
fn head() -> String {
    format!("#!/bin/sh\nroot=${{0%/*}}/..\nllvm=$root/usr/lib/llvm-{MAJOR}\n")
}

fn run(rest: &str) -> String {
    format!("{}{rest} \"$@\"\n", loader("$llvm/lib:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::Cmd;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_script_runs_its_tool_through_the_loader_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        write_scripts(&dir.path().join("bin")).unwrap();
        let lib64 = dir.path().join("usr/lib64");
        fs::create_dir_all(&lib64).unwrap();
        // A loader that shows how it was called.
        let loader = lib64.join("ld-linux-x86-64.so.2");
        fs::write(&loader, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
        fs::set_permissions(&loader, Permissions::from_mode(0o755)).unwrap();
        let clang = dir.path().join("bin/clang");
        let text = Cmd::new(&clang).args(["-c", "a b.c"]).output().unwrap();
        let words: Vec<&str> = text.lines().collect();
        let at = |word: &str| words.iter().position(|w| *w == word);
        assert_eq!(words[at("--argv0").unwrap() + 1], clang.to_str().unwrap());
        assert!(words.iter().any(|w| w.ends_with("llvm-22/bin/clang")));
        assert_eq!(words[words.len() - 2..], ["-c", "a b.c"]);
        assert!(words.contains(&"-no-canonical-prefixes"));
        // clang's own processes must start with this word.
        let text = Cmd::new(&clang).args(["-cc1", "x"]).output().unwrap();
        assert!(text.ends_with("bin/clang\n-cc1\nx\n"), "{text}");
        let text = Cmd::new(dir.path().join("bin/bindgen"))
            .arg("--version")
            .env(BINDGEN_ENV, "/the/bindgen")
            .output()
            .unwrap();
        assert!(text.ends_with("/the/bindgen\n--version\n"), "{text}");
    }

    #[test]
    fn what_kbuild_is_told_names_every_tool_and_nothing_for_the_host() {
        let llvm = Llvm {
            root: "/c/llvm/22".into(),
            version: String::new(),
        };
        let variables = llvm.make_variables();
        assert!(variables.contains(&"CC=/c/llvm/22/bin/clang".to_owned()));
        assert!(variables.contains(&"BINDGEN=/c/llvm/22/bin/bindgen".to_owned()));
        assert!(!variables.iter().any(|v| v.starts_with("HOST")));
        assert!(!variables.iter().any(|v| v.starts_with("LLVM=")));
    }
}
