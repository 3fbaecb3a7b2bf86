// SPDX-License-Identifier: MIT OR Apache-2.0

//! More programs in a guest that runs.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, Command, Stdio};

use rexpect::session::spawn_command;

use crate::terminal::resize;
use crate::{Ends, PATIENCE, assert_says, assert_status, checkout, exec, stderr, stdout};

fn nobounce(arguments: &[&str]) -> Command {
    let mut command = Command::new(checkout::nobounce());
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The line about the lab, before which is said what takes its time.
fn until_it_is_set_up(stderr: &mut impl BufRead) -> String {
    let line = stderr
        .lines()
        .map(Result::unwrap)
        .find(|line| line.contains("logs in /"));
    line.expect("a line about the lab")
}

/// A guest that waits for the end of its input.
fn guest(name: &str) -> (Child, BufReader<ChildStderr>) {
    let mut child = exec(&["--name", name], &["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let line = until_it_is_set_up(&mut stderr);
    assert!(line.starts_with(&format!("{name}: nic0 ")), "{line}");
    (child, stderr)
}

#[test]
fn programs_and_shells_enter_a_guest_that_runs() {
    let name = format!("enter-{}", std::process::id());
    let (mut child, _stderr) = guest(&name);

    let listed = stdout(&nobounce(&["ls"]).output().unwrap());
    let line = listed.lines().find(|line| line.starts_with(&name));
    let line = line.unwrap_or_else(|| panic!("{name} is not among {listed}"));
    assert!(line.ends_with("\tcat"), "{line}");
    let taken = exec(&["--name", &name], &["true"]).ended(125);
    assert_says(&stderr(&taken), &["runs already"]);

    let script = "cat; echo $NOBOUNCE_NIC >&2; exit 3";
    let mut visitor = nobounce(&["enter", &name, "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = visitor.stdin.take().unwrap();
    stdin.write_all(b"hello").unwrap();
    drop(stdin);
    let output = visitor.wait_with_output().unwrap();
    assert_status(&output, 3);
    assert_eq!(
        (stdout(&output), stderr(&output)),
        ("hello".into(), "nic0\n".into())
    );
    nobounce(&["enter", &name, "--", "no-such-program"]).ended(127);

    let mut shell = Command::new(checkout::nobounce());
    shell
        .args(["enter", "--peer", &name])
        .env("SHELL", "/bin/sh");
    let mut session = spawn_command(shell, Some(PATIENCE)).unwrap();
    session
        .send_line("cd /sys/class/net; echo *0/; tty")
        .unwrap();
    session.exp_string("peer0/\r\n").unwrap();
    session.exp_string("/dev/pts/").unwrap();
    resize(&session, 41, 121);
    session
        .send_line(
            "until stty size | grep '^41 121$'; do sleep 0.1; done; sh -c 'tty; exec sleep 1000'",
        )
        .unwrap();
    session.exp_string("41 121\r\n").unwrap();
    session.exp_string("/dev/pts/").unwrap();
    session.send_control('c').unwrap();
    session.send_line("exit 5").unwrap();
    session.exp_eof().unwrap();
    let status = session.process.wait().unwrap();
    assert!(format!("{status:?}").contains('5'), "{status:?}");

    // Whoever is in a guest that ends must leave it.
    let visitor = nobounce(&["enter", &name, "--", "sh", "-c", "echo in; exec sleep 1000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut visitor = visitor;
    let mut line = String::new();
    BufReader::new(visitor.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "in\n");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let output = visitor.wait_with_output().unwrap();
    assert_status(&output, 125);
    assert_says(&stderr(&output), &["the guest ends"]);
    let listed = stdout(&nobounce(&["ls"]).output().unwrap());
    assert!(!listed.contains(&name), "{listed}");
}

#[test]
fn the_only_guest_that_runs_needs_no_name() {
    // No other test's guests are there.
    let dir = tempfile::tempdir().unwrap();
    let within = |mut command: Command| {
        command.env("XDG_RUNTIME_DIR", dir.path());
        command
    };
    let enter = || within(nobounce(&["enter", "--", "echo", "in"]));
    enter().ended(125);
    let mut guests = ["first", "second"].map(|name| {
        let mut child = within(exec(&["--name", name], &["cat"]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until_it_is_set_up(&mut BufReader::new(child.stderr.take().unwrap()));
        let output = enter().output().unwrap();
        (child, output)
    });
    assert_status(&guests[0].1, 0);
    assert_eq!(stdout(&guests[0].1), "in\n");
    // With two of them it does.
    let output = &guests[1].1;
    assert_status(output, 125);
    assert_says(&stderr(output), &["first", "second"]);
    for (child, _) in &mut guests {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn to_enter_a_guest_that_does_not_run_is_an_error_that_names_it() {
    let output = nobounce(&["enter", "no-such-guest"]).ended(125);
    assert_says(&stderr(&output), &["no guest named no-such-guest runs"]);
}
