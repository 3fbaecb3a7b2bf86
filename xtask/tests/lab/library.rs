// SPDX-License-Identifier: MIT OR Apache-2.0

//! The library's own tests and examples, with a NIC.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::checkout::root;
use crate::{Ends, MODELS, assert_says, exec, stderr, stdout};

/// Builds programs of the library, optimised as those of the guest are; their paths.
fn build(arguments: &[&str]) -> Vec<PathBuf> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .args(["--release", "--package", "devmem-tcp"])
        .args(["--features", "tokio"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root())
        .ended(0);
    let text = stdout(&output);
    let messages = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages
        .filter_map(|message| Some(message["executable"].as_str()?.into()))
        .collect()
}

#[test]
fn the_librarys_own_tests_hold_with_a_nic_and_without() {
    let programs = build(&["test", "--no-run", "--test", "lab"]);
    let program = programs[0].to_str().unwrap();
    for model in MODELS {
        let output = exec(
            &["--model", model],
            &[program, "--ignored", "--test-threads=1"],
        )
        .output()
        .unwrap();
        let text = stdout(&output);
        assert!(
            output.status.success() && text.contains(" 0 failed; 0 ignored"),
            "{model}: {text}{}",
            stderr(&output)
        );
    }
}

const README: &str = include_str!("../../../library/devmem-tcp/README.md");

#[test]
fn the_librarys_programs_say_how_they_are_used_and_work_as_its_readme_has_them() {
    let programs = build(&["build", "--examples"]);
    for program in &programs {
        let output = Command::new(program).output().unwrap();
        assert!(!output.status.success());
        assert_says(&stderr(&output), &["usage: "]);
    }
    let line = |start: &str| README.lines().find(|line| line.starts_with(start)).unwrap();
    // A part of what the page sends.
    let client = line("client eth0").replace(" 1024 ", " 16 ");
    let server = line("server eth0");
    let folder = programs[0].parent().unwrap().display();
    let script = format!(
        "PATH={folder}:$PATH
         peer() {{ ip netns exec $NOBOUNCE_PEER_NETNS \"$@\"; }}
         ip link property add dev nic0 altname eth0 || exit
         peer ip link property add dev peer0 altname eth0 || exit
         # The page's lines have comments.
         {{ {server}
         }} &
         until grep -q :1451 /proc/net/tcp; do kill -0 $! || exit; sleep 0.1; done
         peer {client}
         wait $!"
    );
    for model in MODELS {
        let output = exec(&["--model", model], &["bash", "-c", &script]).ended(0);
        let text = stdout(&output);
        let received = "16 connections: 16777216 bytes in device memory, 0 elsewhere, verified";
        assert!(
            text.contains(received),
            "{model}: {text}{}",
            stderr(&output)
        );
    }
}
