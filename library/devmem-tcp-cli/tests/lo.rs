// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tool on interfaces that need no NIC, with whatever kernel and privileges.

use std::fs;
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

/// The verdict on a way.
#[track_caller]
fn verdict<'a>(report: &'a Value, way: &str) -> &'a Value {
    let verdicts = report["verdicts"].as_array().expect("a list");
    let verdict = verdicts.iter().find(|verdict| verdict["way"] == way);
    verdict.expect("each way has one")
}

#[test]
fn check_says_that_the_loopback_lacks_header_split_and_fails_only_if_asked_for() {
    let output = run(&["check", "lo", "--json", "--try"]);
    assert_eq!(output.status.code(), Some(0));
    let report = json(&output);
    let rx = verdict(&report, "rx");
    assert_eq!(rx["verdict"], "lacks");
    let lacks = rx["lacks"].as_array().expect("a list");
    assert!(lacks.iter().any(|l| l["what"] == "header split"), "{rx}");
    assert_eq!(run(&["check", "lo", "--for", "rx"]).status.code(), Some(1));
    let ordinary = run(&["check", "lo", "--for", "ordinary"]);
    assert_eq!(ordinary.status.code(), Some(0), "the loopback is up");
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
    for command in ["show", "check"] {
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

#[test]
fn check_works_on_a_veth_in_a_user_namespace() {
    let script = "ip link add a type veth peer name b && ip link set a up && ip link set b up \
                  && exec \"$0\" check a --json --try";
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--net",
            "sh",
            "-c",
            script,
            TOOL,
        ])
        .output();
    let Ok(output) = output.map_err(|error| eprintln!("skipped: {error}")) else {
        return;
    };
    if output.stdout.is_empty() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let report = json(&output);
    assert_eq!(report["driver"], "veth");
    assert_eq!(verdict(&report, "ordinary")["verdict"], "works");
    assert_eq!(verdict(&report, "rx")["verdict"], "lacks");
    let findings = report["findings"].as_array().expect("a list");
    let namespace = findings.iter().find(|f| f["what"] == "user namespace");
    assert_eq!(namespace.expect("a finding")["state"], "fix");
}

#[test]
fn every_command_has_a_man_page_and_shells_complete() {
    let share = std::env::temp_dir().join(format!("devmem-tcp-{}", std::process::id()));
    let output = run(&["manual", &share.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(0));
    let read = |name: &str| fs::read_to_string(share.join(name)).expect("it was made");
    let main = read("man/man1/devmem-tcp.1");
    let completions = [
        "bash-completion/completions/devmem-tcp",
        "zsh/site-functions/_devmem-tcp",
        "fish/vendor_completions.d/devmem-tcp.fish",
    ]
    .map(read);
    for (command, option) in [
        ("listen", "validate"),
        ("connect", "bytes"),
        ("steer", "everything"),
        ("show", "watch"),
        ("check", "try"),
    ] {
        assert!(main.contains(command), "{command}: {main}");
        let page = read(&format!("man/man1/devmem-tcp-{command}.1"));
        assert!(page.contains(&format!("\\-\\-{option}")), "{page}");
        for text in &completions {
            assert!(
                text.contains(command) && text.contains(option),
                "{command}: {text}"
            );
        }
    }
    fs::remove_dir_all(share).expect("it was made");
}
