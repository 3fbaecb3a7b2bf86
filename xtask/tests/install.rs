// SPDX-License-Identifier: MIT OR Apache-2.0

//! The program where it is installed, away from its checkout.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs it from `/`, as a user's shell would.
fn nobounce(home: &Path, args: &[&str]) -> Output {
    let program = home.join("bin/nobounce");
    if !program.exists() {
        fs::create_dir_all(home.join("bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_nobounce"), &program).unwrap();
    }
    Command::new(program)
        .args(args)
        .current_dir("/")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    texts.concat()
}

#[test]
fn it_calls_itself_by_its_name_and_every_command_has_a_man_page() {
    let home = tempfile::tempdir().unwrap();
    let help = text(&nobounce(home.path(), &["--help"]));
    assert!(
        help.contains("Usage: nobounce [OPTIONS] <COMMAND>"),
        "{help}"
    );

    let share = home.path().join("share");
    let output = nobounce(home.path(), &["manual", &share.to_string_lossy()]);
    assert!(output.status.success(), "{}", text(&output));
    let page = |name: &str| fs::read_to_string(share.join("man/man1").join(name)).unwrap();
    assert!(page("nobounce.1").contains("nobounce\\-exec(1)"));
    assert!(page("nobounce-exec.1").contains("\\-\\-timeout"));
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<_> = commands
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"exec"), "{help}");
    for command in commands {
        let page = page(&format!("nobounce-{command}.1"));
        assert!(!page.contains("cargo xtask"), "{page}");
    }
}

#[test]
fn bash_completes_its_commands() {
    let home = tempfile::tempdir().unwrap();
    let share = home.path().join("share");
    nobounce(home.path(), &["manual", &share.to_string_lossy()]);
    let script = share.join("bash-completion/completions/nobounce");
    let output = Command::new("bash")
        .args(["-c", "source \"$1\"; COMP_WORDS=(nobounce ex); COMP_CWORD=1; _nobounce nobounce ex nobounce; echo ${COMPREPLY[@]}", "bash"])
        .arg(script)
        .output()
        .unwrap();
    assert_eq!(text(&output).trim(), "exec");
}

#[test]
fn what_it_builds_goes_to_the_cache_and_not_into_the_checkout() {
    let home = tempfile::tempdir().unwrap();
    nobounce(home.path(), &["--help"]);
    let place = home.path().join(".cache/nobounce/checkouts");
    // Also where a program runs it that cargo runs for another package, in a kernel tree or not.
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("Kbuild"), "").unwrap();
    let folders = [None, Some(tree.path().join("package"))];
    for folder in folders {
        let mut command = Command::new(home.path().join("bin/nobounce"));
        if let Some(folder) = folder {
            command
                .env("CARGO_MANIFEST_DIR", folder)
                .env("CARGO_PKG_NAME", "xtask")
                .env("CARGO_PKG_DESCRIPTION", "another");
        } else {
            command
                .env_remove("CARGO_MANIFEST_DIR")
                .env_remove("CARGO_PKG_DESCRIPTION");
        }
        let output = command
            .arg("clean")
            .env("HOME", home.path())
            .env_remove("XDG_CACHE_HOME")
            .output()
            .unwrap();
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.contains(&*place.to_string_lossy()), "{said}");
    }
}
