// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tool on interfaces that need no NIC, with whatever kernel and privileges.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const TOOL: &str = env!("CARGO_BIN_EXE_devmem-tcp");

fn run(arguments: &[&str]) -> Output {
    Command::new(TOOL)
        .args(arguments)
        .output()
        .expect("it starts")
}

#[track_caller]
fn json(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

#[test]
fn show_has_the_loopbacks_state_and_reasons_for_what_it_lacks() {
    let output = run(&["show", "lo", "--json"]);
    let shown = json(&output);
    let lo = &shown["interfaces"][0];
    assert_eq!(
        (&lo["interface"], &lo["link"]["xdp"]),
        (&"lo".into(), &false.into())
    );
    assert!(lo["rss"]["lacks"].is_string(), "{lo}");
    let text = run(&["show", "127.0.0.1"]).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.starts_with("lo (1)"), "{text}");
    assert!(!text.contains('\x1b'), "a pipe is no terminal: {text}");
}

#[test]
fn an_interface_that_does_not_exist_is_an_error() {
    for command in ["show"] {
        let output = run(&[command, "no-such-if"]);
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("no-such-if does not exist"), "{stderr}");
    }
}

#[test]
fn watched_json_is_an_object_a_line_until_the_reader_has_enough() {
    let mut child = Command::new(TOOL)
        .args(["show", "lo", "--json", "--watch=0.01"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for _ in 0..3 {
        let line = lines.next().expect("a line").expect("text");
        let shown: Value = serde_json::from_str(&line).expect("an object");
        assert_eq!(shown["interfaces"][0]["interface"], "lo");
    }
    drop(lines);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
