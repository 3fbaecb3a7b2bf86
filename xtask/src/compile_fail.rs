// SPDX-License-Identifier: MIT OR Apache-2.0

//! What safe code must not be able to say: `drivers/net/compile_fail` has a snippet for each such
//! misuse of `net`, and the compiler must find what the snippet says, and nothing else. Each also
//! says how it is right, and that must compile: so it fails for its reason.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use provision::files;

use crate::kernel::Kernel;
use crate::module;
use crate::project::Project;
use crate::ui::Step;

/// The snippets, and the driver that they include.
const FOLDER: &str = "drivers/net/compile_fail";
const COMMON: &str = "nic.rs";

/// A crate on `net`: how Kbuild compiles it is how the snippets are compiled.
const USER: &str = "drivers/rwire/rwire_main";

/// What a snippet expects starts with this.
const EXPECTS: &str = "//~ ";

/// Compiles all snippets.
///
/// # Errors
///
/// When one compiles, or fails for another reason; names all of them.
pub(crate) fn check(project: &Project, kernel: &Kernel) -> Result<()> {
    module::build(project, kernel)?;
    let step = Step::begin("misuse", "snippets that must not compile");
    let modules = project.out("module");
    let out = project.out("compile-fail");
    fs::create_dir_all(&out)?;
    let rustc = rustc(&modules, &project.root)?;

    let snippets = snippets(&project.root.join(FOLDER))?;
    let mut wrong = Vec::new();
    for snippet in &snippets {
        if let Err(error) = judge(snippet, &rustc, &modules, &out) {
            wrong.push(format!("{}: {error:#}", snippet.display()));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    step.done(&format!("{} snippets are refused", snippets.len()));
    Ok(())
}

fn snippets(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = files::entries(folder)?;
    found.retain(|path| path.file_name().is_some_and(|name| name != COMMON));
    ensure!(!found.is_empty(), "no snippet in {}", folder.display());
    Ok(found)
}

/// How Kbuild has compiled [`USER`], without what is its own.
fn rustc(modules: &Path, root: &Path) -> Result<String> {
    let source = root.join(format!("{USER}.rs"));
    let (folder, name) = USER.rsplit_once('/').context("a crate is in a folder")?;
    let saved = modules.join(folder).join(format!(".{name}.o.cmd"));
    let text = fs::read_to_string(&saved)?;
    let command = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("savedcmd_{USER}.o := ")))
        .with_context(|| format!("{} has no command", saved.display()))?;
    Ok(without_outputs(command, &source.display().to_string()))
}

/// The compiler's part of a command of Kbuild's, without its source and where it writes.
fn without_outputs(command: &str, source: &str) -> String {
    let compiler = command.split(" ; ").next().unwrap_or_default();
    let mut words = compiler.split(' ').filter(|word| !word.is_empty());
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if word == "--out-dir" {
            words.next();
        } else if word != source && !word.starts_with("--emit=") {
            kept.push(word);
        }
    }
    kept.join(" ")
}

/// Compiles a snippet both ways.
fn judge(snippet: &Path, rustc: &str, modules: &Path, out: &Path) -> Result<()> {
    let text = fs::read_to_string(snippet)?;
    let expected: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix(EXPECTS))
        .collect();
    ensure!(!expected.is_empty(), "says nowhere what is wrong (`//~ `)");

    let (compiles, said) = compile(snippet, rustc, modules, out, false)?;
    ensure!(!compiles, "compiles, but must not: {}", expected.join("; "));
    compare(&expected, &said)?;
    let (compiles, said) = compile(snippet, rustc, modules, out, true)?;
    ensure!(compiles, "does not compile with --cfg fixed:\n{said}");
    Ok(())
}

fn compile(
    snippet: &Path,
    rustc: &str,
    modules: &Path,
    out: &Path,
    fixed: bool,
) -> Result<(bool, String)> {
    // As Kbuild does, by a shell: some of it is quoted.
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!(
            r#"{rustc} --check-cfg='cfg(fixed)' -Awarnings --emit=obj --out-dir "$1" $3 "$2""#
        ))
        .arg("sh")
        .arg(out)
        .arg(snippet)
        .arg(if fixed { "--cfg=fixed" } else { "" })
        // As the kernel's Makefile does, for the unstable features that it needs.
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(modules)
        .output()
        .context("can't run rustc")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.success(), said))
}

/// Whether the compiler found what was expected, and nothing else.
fn compare(expected: &[&str], said: &str) -> Result<()> {
    let found: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("error"))
        .filter(|line| !line.starts_with("error: aborting"))
        .collect();
    let all = expected.len() == found.len()
        && expected
            .iter()
            .all(|expected| found.iter().any(|found| found.starts_with(expected)));
    ensure!(
        all,
        "expected\n  {}\nbut the compiler says\n  {}",
        expected.join("\n  "),
        found.join("\n  ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{compare, without_outputs};

    #[test]
    fn a_snippet_is_compiled_as_kbuild_compiles_a_driver() {
        let command = "A=b rustc --edition=2021 -O --out-dir drivers/x/ --emit=dep-info=d \
             --emit=obj=o /src/x.rs   ; objtool drivers/x.o";
        assert_eq!(
            without_outputs(command, "/src/x.rs"),
            "A=b rustc --edition=2021 -O"
        );
    }

    #[test]
    fn a_snippet_that_fails_for_another_reason_is_noticed() {
        let said = "error[E0308]: mismatched types\n  --> x\nerror: aborting due to 1 error\n";
        assert!(compare(&["error[E0308]: mismatched types"], said).is_ok());
        assert!(compare(&["error[E0599]: no method"], said).is_err());
        let more = format!("{said}error[E0425]: cannot find value\n");
        assert!(compare(&["error[E0308]: mismatched types"], &more).is_err());
        assert!(compare(&["error[E0308]: mismatched types"], "").is_err());
    }
}
