// SPDX-License-Identifier: MIT OR Apache-2.0

//! A debugger of the guest's kernel.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::{exec, stdout};

#[test]
fn gdb_stops_in_a_module_and_shows_its_source() {
    let mut child = exec(&["--gdb"], &["true"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let (_, script) = line.trim_end().split_once("gdb -x ").unwrap();

    let output = Command::new("gdb")
        .args(["-nx", "-batch", "-x", script])
        .args(["-ex", "set breakpoint pending on"])
        .args(["-ex", "tbreak rigb_main::driver::probe"])
        .args(["-ex", "continue", "-ex", "backtrace", "-ex", "lx-lsmod"])
        .output()
        .expect("gdb, which `nobounce test` installs");
    let text = stdout(&output);
    let stopped = text.lines().find(|line| line.starts_with("#0 "));
    assert!(
        stopped.is_some_and(|frame| frame.contains("drivers/rigb/driver.rs:")),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A command of the kernel's own scripts.
    assert!(text.contains("Used by"), "{text}");
    // gdb has left, and the guest goes on.
    assert!(child.wait().unwrap().success());
}
