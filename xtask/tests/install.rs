// SPDX-License-Identifier: MIT OR Apache-2.0

//! The program where it is installed, away from its checkout.

mod checkout;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs it from `/`, as a user's shell would.
fn nobounce(home: &Path, args: &[&str]) -> Output {
    let program = home.join("bin/nobounce");
    if !program.exists() {
        fs::create_dir_all(home.join("bin")).unwrap();
        fs::copy(checkout::nobounce(), &program).unwrap();
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

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let below = entries.map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    below.flatten().collect()
}

#[test]
fn make_installs_what_a_user_needs_below_a_prefix_and_removes_all_of_it() {
    let prefix = tempfile::tempdir().unwrap();
    let make = |goal: &str| {
        let output = Command::new("make")
            .arg(goal)
            .arg(format!("PREFIX={}", prefix.path().display()))
            .current_dir(checkout::root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
    };
    make("install");
    for command in ["nobounce", "devmem-tcp"] {
        let program = prefix.path().join("bin").join(command);
        let output = Command::new(program).arg("--help").output().unwrap();
        assert!(text(&output).contains("Usage: "), "{}", text(&output));
        for file in [
            format!("share/man/man1/{command}.1"),
            format!("share/bash-completion/completions/{command}"),
            format!("share/zsh/site-functions/_{command}"),
            format!("share/fish/vendor_completions.d/{command}.fish"),
        ] {
            let size = fs::metadata(prefix.path().join(&file)).map(|file| file.len());
            assert!(size.is_ok_and(|size| size > 0), "{file}");
        }
    }
    let header = fs::read_to_string(prefix.path().join("include/nobounce.h")).unwrap();
    assert!(header.contains("nobounce_window_start"));
    make("uninstall");
    assert_eq!(files(prefix.path()), Vec::<PathBuf>::new());
}

#[test]
fn cargo_installs_the_tool_alone() {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["install", "--locked", "--offline", "--no-track"])
        .args(["--path", "library/devmem-tcp-cli", "--target-dir", "target"])
        .arg("--root")
        .arg(home.path())
        .current_dir(checkout::root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let help = Command::new(home.path().join("bin/devmem-tcp"))
        .arg("--help")
        .output()
        .unwrap();
    assert!(
        text(&help).contains("Usage: devmem-tcp <COMMAND>"),
        "{}",
        text(&help)
    );
}
