// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs that have a terminal, and shells.

use std::fs;
use std::process::{Command, Stdio};

use rexpect::session::{PtySession, spawn_command};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::checkout::nobounce;
use crate::{NONE, PATIENCE, exec};

/// Gives a terminal so many rows and columns.
pub(crate) fn resize(session: &PtySession, ws_row: u16, ws_col: u16) {
    let size = Winsize {
        ws_row,
        ws_col,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&session.process.pty, size).unwrap();
}

/// A shell in a guest, on a terminal with colours.
fn shell(options: &[&str]) -> PtySession {
    let mut command = Command::new(nobounce());
    command
        .arg("shell")
        .args(options)
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm-256color");
    spawn_command(command, Some(PATIENCE)).unwrap()
}

#[test]
fn a_program_has_a_terminal_where_the_user_has_one() {
    let mut command = exec(NONE, &["bash", "--norc", "-i"]);
    command.env("PS1", "lab> ").stdin(Stdio::inherit());
    let mut session = spawn_command(command, Some(PATIENCE)).unwrap();
    resize(&session, 31, 97);
    session.exp_string("lab> ").unwrap();
    session
        .send_line("sh -c 'stty size; read line; echo got $line'")
        .unwrap();
    session.exp_string("31 97\r\n").unwrap();
    session.send_control('z').unwrap();
    session.exp_string("Stopped").unwrap();
    session.exp_string("lab> ").unwrap();
    session.send_line("fg").unwrap();
    session.send_line("hello").unwrap();
    session.exp_string("got hello").unwrap();
    session.exp_string("lab> ").unwrap();
    resize(&session, 40, 120);
    session
        .send_line("until stty size | grep '^40 120$'; do sleep 0.1; done")
        .unwrap();
    session.exp_string("40 120\r\n").unwrap();
    session.exp_string("lab> ").unwrap();
    // One job, which Ctrl-C ends whenever it comes: between two there is none in the foreground.
    let job = "sh -c 'stty size; tty; exec sleep 1000'";
    session.send_line(job).unwrap();
    session.exp_regex("[0-9]+ [0-9]+\r\n").unwrap();
    session.exp_string("/dev/pts/0").unwrap();
    // To the job in the foreground, which ends; the shell does not.
    session.send_control('c').unwrap();
    session.exp_string("lab> ").unwrap();
    session.send_line("exit $((6 * 7))").unwrap();
    session.exp_eof().unwrap();
    let status = session.process.wait().unwrap();
    assert!(format!("{status:?}").contains("42"), "{status:?}");
}

#[test]
fn a_shell_runs_at_either_end_of_the_wire() {
    for (options, nic) in [(NONE, "nic0"), (&["--peer"], "peer0")] {
        let mut session = shell(options);
        session
            .send_line("cd /sys/class/net; printf '\\033[31m%s\\n' *0/ $TERM; exit 5")
            .unwrap();
        let coloured = |text: &str| format!("\x1b[31m{text}\r\n");
        for text in [&format!("{nic}/"), "xterm-256color"] {
            session.exp_string(&coloured(text)).unwrap();
        }
        session.exp_eof().unwrap();
        let status = session.process.wait().unwrap();
        assert!(format!("{status:?}").contains('5'), "{status:?}");
    }
}

#[test]
fn what_scrolls_by_and_the_other_screen_reach_the_terminal_as_they_are() {
    let mut session = shell(NONE);
    // As a pager does: to the other screen, where all of it scrolls by, and back.
    session
        .send_line("printf '\\033[?1049h'; seq -f 'line %g' 2000; printf '\\033[?1049l'; exit")
        .unwrap();
    session.exp_string("\x1b[?1049h").unwrap();
    let lines: String = (1..=2000).map(|n| format!("line {n}\r\n")).collect();
    let before = session.exp_string("\x1b[?1049l").unwrap();
    assert_eq!(before, lines);
    session.exp_eof().unwrap();
}

#[test]
fn errors_of_a_program_with_a_terminal_go_where_the_user_wants_them() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("sh");
    let script = "exec $NOBOUNCE exec -- sh -c 'tty; tty <&2; echo gone wrong >&2' 2> $ERRORS";
    command
        .args(["-c", script])
        .env("NOBOUNCE", nobounce())
        .env("ERRORS", file.path());
    let mut session = spawn_command(command, Some(PATIENCE)).unwrap();
    session.exp_string("/dev/pts/0\r\nnot a tty\r\n").unwrap();
    session.exp_eof().unwrap();
    let errors = fs::read_to_string(file.path()).unwrap();
    assert!(errors.ends_with("\ngone wrong\n"), "{errors}");
}
