// SPDX-License-Identifier: MIT OR Apache-2.0

//! Signals that the user sends, and the one that a pipe without a reader does.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::{NONE, exec, shell};

#[test]
fn signals_reach_the_program() {
    let script = "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.1; done";
    let mut child = shell(NONE, script).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut ready = [0; 6];
    stdout.read_exact(&mut ready).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((&ready, rest.as_str()), (b"ready\n", "interrupted\n"));
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(3), None));
}

#[test]
fn ctrl_c_and_other_signals_end_a_program_that_does_not_catch_them() {
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::USR1, 10)] {
        // A terminal sends SIGINT to all that a command line has started: QEMU must not get it.
        let mut child = shell(NONE, "echo ready; exec sleep 1000")
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut ready)
            .unwrap();
        kill_process_group(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + number));
    }
}

#[test]
fn a_program_whose_output_nobody_reads_any_more_gets_sigpipe() {
    let mut child = exec(NONE, &["yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 2];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut line).unwrap();
    drop(stdout);
    assert_eq!(&line, b"y\n");
    assert_eq!(child.wait().unwrap().code(), Some(128 + 13));
}
