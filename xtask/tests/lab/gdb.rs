// SPDX-License-Identifier: MIT OR Apache-2.0

//! A debugger of the guest's kernel.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::{assert_says, assert_status, exec, stdout};

/// Starts a program in a guest that waits for gdb. Returns what the command goes on to print, and the script for gdb.
pub(crate) fn start(options: &[&str], words: &[&str]) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = exec(&[&["--gdb"], options].concat(), words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    // Another run may be building, which is said first.
    let script = stderr.by_ref().lines().find_map(|line| {
        let line = line.unwrap();
        Some(line.split_once("gdb -x ")?.1.to_owned())
    });
    (child, stderr, script.expect("how to start gdb"))
}

/// gdb, which does these things after the script, and leaves.
pub(crate) fn gdb(script: &str, commands: &[&str]) -> Command {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-x", script]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    gdb
}

#[test]
fn gdb_stops_in_a_module_and_shows_its_source() {
    let (mut child, _stderr, script) = start(&[], &["true"]);
    let commands = [
        "set breakpoint pending on",
        "tbreak rigb_main::driver::probe",
        "continue",
        "backtrace",
        "lx-lsmod",
    ];
    let output = gdb(&script, &commands).output();
    let output = output.expect("gdb, which `nobounce test` installs");
    let text = stdout(&output);
    let stopped = text.lines().find(|line| line.starts_with("#0 "));
    assert!(
        stopped.is_some_and(|frame| frame.contains("drivers/rigb/driver.rs:")),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A command of the kernel's own scripts.
    assert_says(&text, &["Used by"]);
    // gdb has left, and the guest goes on.
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_program_that_has_ten_seconds_left_goes_on_after_fifteen_at_a_breakpoint() {
    // Its client has failed when it calls setdomainname(2), which nothing else here does; and it has been told to
    // end when it does so again.
    let server = "
        $name = qq(x);
        $SIG{TERM} = sub { syscall 171, $name, 1; sleep 2; print qq(ended\n); exit };
        $s = IO::Socket::INET->new(Listen => 1, LocalPort => 8000) or die;
        sleep 2;
        syscall 171, $name, 1;
        sleep 2;
        print qq(waits\n);
        sleep 1000;
    ";
    let (child, _stderr, script) = start(
        &["--serve", "--peer", "exit 3"],
        &["perl", "-MIO::Socket::INET", "-e", server],
    );
    let commands = [
        "break __x64_sys_setdomainname",
        "continue",
        "shell sleep 15",
        "continue",
        "shell sleep 15",
    ];
    let stopped = gdb(&script, &commands).output().unwrap();
    assert_says(&stdout(&stopped), &["__x64_sys_setdomainname ("]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "waits\nended\n");
    assert_status(&output, 3);
}
