// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tool of devmem-tcp on a NIC.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::{assert_status, exec, run, stderr, stdout};

/// The tool, which is built with its own tests.
pub(crate) fn tool() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_nobounce")).with_file_name("devmem-tcp");
    assert!(
        path.exists(),
        "no {}: cargo build -p devmem-tcp-cli",
        path.display()
    );
    path
}

/// Receives as `listen` says, from a peer that sends 16 MiB in 3 flows as `connect` says; both reports.
fn transfer(options: &[&str], listen: &str, connect: &str) -> (Value, Value) {
    let tool = tool();
    let tool = tool.display();
    let common = "--validate 7 --flows 3 --format json";
    let send = format!("{tool} connect 192.0.2.1:5201 --bytes 16M {common} {connect}");
    let receive = format!("{tool} listen 192.0.2.1:5201 {common} {listen}");
    let options = [options, &["--timeout", "300", "--serve", "--peer", &send]].concat();
    let output = exec(&options, &["sh", "-c", &receive]).output().unwrap();
    assert_status(&output, 0);
    let received = report(&stdout(&output), "");
    let sent = report(&stderr(&output), "peer: ");
    for report in [&received, &sent] {
        assert_eq!(report["bytes"], 16 << 20, "{report}");
    }
    assert_eq!(received["valid"], true, "{received}");
    (received, sent)
}

/// The line that is JSON.
fn report(text: &str, prefix: &str) -> Value {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let report = lines.rfind(|line| line.starts_with('{'));
    let report = report.unwrap_or_else(|| panic!("no report in {text}"));
    serde_json::from_str(report).unwrap_or_else(|error| panic!("{error}: {report}"))
}

/// All bytes took this way.
#[track_caller]
fn assert_way(report: &Value, way: &str) {
    assert_eq!(report["ways"][way], 16 << 20, "{report}");
}

#[test]
fn device_memory_goes_from_an_accelerator_to_another_place_in_it() {
    // Both ends have the same accelerator, of 64 MiB.
    let memory = "--memory accelerator:0 --size 16M";
    let listen = format!("--queue 1 --steer none {memory}");
    let (received, sent) = transfer(&[], &listen, memory);
    assert_way(&received, "direct");
    assert_way(&sent, "direct");
}

#[test]
fn zero_copy_receive_takes_what_ordinary_sockets_send() {
    let listen = "--mode zcrx --queue 1 --steer none";
    let (received, sent) = transfer(&[], listen, "--mode ordinary --memory ram");
    assert_way(&received, "direct");
    assert_way(&sent, "ordinary");
}

#[test]
fn without_a_device_zero_copy_receive_copies_and_says_so() {
    let listen = "--mode zcrx-nodev --memory ram";
    let (received, _) = transfer(&[], listen, "--mode ordinary --memory ram");
    assert_way(&received, "copied");
}

/// The interface as the kernel tells it.
fn state(output: &Output) -> Vec<String> {
    let text = stdout(output);
    let states = text.split("-- state\n").skip(1);
    states
        .map(|state| {
            state
                .split("-- end\n")
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

#[test]
fn flows_are_steered_by_rules_and_the_interface_is_as_it_was_afterwards() {
    let tool = tool();
    let tool = tool.display();
    let script = format!(
        "state() {{ echo '-- state'; ethtool -x nic0; ethtool -n nic0; ethtool -g nic0; echo '-- end'; }}
         ethtool -X nic0 default; ethtool -G nic0 tcp-data-split auto
         state
         {tool} steer nic0 --queue 1 --port 5201 -- sh -c \"$(declare -f state); state; exit 7\"
         echo code $?
         state"
    );
    let options = ["--model", "nobounce", "--timeout", "300"];
    let output = exec(&options, &["bash", "-c", &script]).output().unwrap();
    assert_status(&output, 0);
    let states = state(&output);
    let [before, during, after] = &states[..] else {
        panic!("{}{}", stdout(&output), stderr(&output));
    };
    assert_eq!(before, after);
    assert!(during.contains("Dest port: 5201"), "{during}");
    assert!(stdout(&output).contains("code 7"));

    let listen = "ethtool -X nic0 default".to_owned();
    let send = format!("{tool} connect 192.0.2.1:5201 --bytes 4M --validate 7");
    let options = [&options[..], &["--serve", "--peer", &send]].concat();
    let receive =
        format!("{listen}; {tool} listen 192.0.2.1:5201 --queue 1 --validate 7 --format json");
    let output = run(&options, &receive);
    assert_status(&output, 0);
    let received = report(&stdout(&output), "");
    assert_eq!(received["ways"]["direct"], 4 << 20, "{received}");
}
