// SPDX-License-Identifier: MIT OR Apache-2.0

//! The program where it is installed, away from its checkout.

mod checkout;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs it from `/`, as a user's shell would; returns what it says.
fn nobounce(home: &Path, args: &[&str]) -> String {
    let program = home.join("bin/nobounce");
    if !program.exists() {
        fs::create_dir_all(home.join("bin")).unwrap();
        fs::copy(checkout::nobounce(), &program).unwrap();
    }
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir("/")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    succeeds(command.env("HOME", home))
}

/// Runs a command, which must succeed; returns what it says.
#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let said = texts.concat();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn it_calls_itself_by_its_name_and_every_command_has_a_man_page() {
    let home = tempfile::tempdir().unwrap();
    let help = nobounce(home.path(), &["--help"]);
    assert!(
        help.contains("Usage: nobounce [OPTIONS] <COMMAND>"),
        "{help}"
    );

    let share = home.path().join("share");
    nobounce(home.path(), &["manual", &share.to_string_lossy()]);
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
    let mut bash = Command::new("bash");
    bash.args(["-c", "source \"$1\"; COMP_WORDS=(nobounce ex); COMP_CWORD=1; _nobounce nobounce ex nobounce; echo ${COMPREPLY[@]}", "bash"])
        .arg(script);
    assert_eq!(succeeds(&mut bash).trim(), "exec");
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
        command.arg("clean").env("HOME", home.path());
        let said = succeeds(command.env_remove("XDG_CACHE_HOME"));
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
        let mut make = Command::new("make");
        make.arg(goal)
            .arg(format!("PREFIX={}", prefix.path().display()));
        succeeds(make.current_dir(checkout::root()));
    };
    make("install");
    for command in ["nobounce", "devmem-tcp"] {
        let program = prefix.path().join("bin").join(command);
        let help = succeeds(Command::new(program).arg("--help"));
        assert!(help.contains("Usage: "), "{help}");
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
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["install", "--locked", "--offline", "--no-track"])
        .args(["--path", "library/devmem-tcp-cli", "--target-dir", "target"])
        .arg("--root")
        .arg(home.path());
    succeeds(cargo.current_dir(checkout::root()));
    let help = succeeds(Command::new(home.path().join("bin/devmem-tcp")).arg("--help"));
    assert!(help.contains("Usage: devmem-tcp <COMMAND>"), "{help}");
}
