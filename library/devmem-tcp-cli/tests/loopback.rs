// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the tool does on a machine without any NIC.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn tool(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_devmem-tcp"));
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a listener and waits until it listens.
fn listen(arguments: &[&str]) -> Child {
    let all = [
        &["listen"],
        arguments,
        &["--mode", "ordinary", "--memory", "ram"],
    ]
    .concat();
    let mut child = tool(&all).spawn().expect("the tool starts");
    let mut line = String::new();
    let stderr = child.stderr.as_mut().expect("it is piped");
    BufReader::new(stderr).read_line(&mut line).expect("a line");
    assert!(line.contains("listening on"), "{line}");
    child
}

fn connect(arguments: &[&str]) -> Output {
    let all = [
        &["connect"],
        arguments,
        &["--mode", "ordinary", "--memory", "ram"],
    ]
    .concat();
    tool(&all).output().expect("the tool runs")
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("{error}: {text}{errors}")
    })
}

#[test]
fn all_bytes_of_all_flows_arrive_and_both_ends_agree() {
    let common = ["--flows", "3", "--validate", "7", "--format", "json"];
    let listener = listen(&[&["127.0.0.1:15201"], &common[..]].concat());
    let to = ["127.0.0.1:15201", "--bytes", "10000000"];
    let sent = connect(&[&to, &common[..]].concat());
    let received = listener.wait_with_output().expect("it ends");
    for output in [&sent, &received] {
        assert!(output.status.success(), "{output:?}");
        let report = json(output);
        assert_eq!(report["bytes"], 10_000_000);
        assert_eq!(report["ways"]["ordinary"], 10_000_000);
        assert_eq!(report["flows"], 3);
    }
    assert_eq!(json(&received)["valid"], true);
}

#[test]
fn payload_of_another_seed_fails_the_listener_and_is_named() {
    let listener = listen(&["127.0.0.1:15202", "--validate", "8"]);
    let _sent = connect(&["127.0.0.1:15202", "--bytes", "100000", "--validate", "7"]);
    let received = listener.wait_with_output().expect("it ends");
    assert_eq!(received.status.code(), Some(1));
    let text = String::from_utf8_lossy(&received.stdout);
    assert!(text.contains("wrong: byte 0 of the stream"), "{text}");
}

#[test]
fn round_trips_are_measured_and_their_quantiles_are_in_order() {
    let listener = listen(&["127.0.0.1:15203", "--rpc", "1000/10"]);
    let to = ["127.0.0.1:15203", "--bytes", "200000", "--rpc", "1000/10"];
    let sent = connect(&[&to[..], &["--format", "json"]].concat());
    let received = listener.wait_with_output().expect("it ends");
    assert!(received.status.success(), "{received:?}");
    let report = json(&sent);
    let latency = &report["latency"];
    assert_eq!(latency["count"], 200);
    let quantiles = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"];
    let times = quantiles.map(|name| latency[name].as_u64().expect(name));
    assert!(times[0] > 0 && times.is_sorted(), "{times:?}");
}

#[test]
fn requests_are_whole_also_where_the_bytes_of_a_flow_are_not() {
    let common = ["--rpc", "4K", "--flows", "3", "--format", "json"];
    let listener = listen(&[&["127.0.0.1:15205"], &common[..]].concat());
    let sent = connect(&[&["127.0.0.1:15205", "--bytes", "1M"], &common[..]].concat());
    let received = listener.wait_with_output().expect("it ends");
    // 85 of them for each flow.
    for output in [&sent, &received] {
        assert!(output.status.success(), "{output:?}");
        assert_eq!(json(output)["bytes"], 3 * 85 * 4096);
    }
    assert_eq!(json(&sent)["latency"]["count"], 3 * 85);

    for (arguments, named) in [
        (["--rpc", "4K", "--bytes", "4000"], "--bytes"),
        (["--rpc", "2M", "--size", "1M"], "--size"),
    ] {
        let listener = listen(&["127.0.0.1:15205"]);
        let sent = connect(&[&["127.0.0.1:15205"], &arguments[..]].concat());
        let text = String::from_utf8_lossy(&sent.stderr);
        assert_eq!(sent.status.code(), Some(1), "{text}");
        assert!(text.contains(named), "{text}");
        listener.wait_with_output().expect("it ends");
    }
}

#[test]
fn a_stream_that_is_not_whole_or_has_nothing_fails_the_listener_that_looks() {
    let listener = listen(&["127.0.0.1:15206", "--bytes", "100001"]);
    let _sent = connect(&["127.0.0.1:15206", "--bytes", "100000"]);
    let received = listener.wait_with_output().expect("it ends");
    assert_eq!(received.status.code(), Some(1));
    let text = String::from_utf8_lossy(&received.stderr);
    assert!(text.contains("100000 bytes came, and not 100001"), "{text}");

    let listener = listen(&["127.0.0.1:15206", "--validate", "7"]);
    drop(TcpStream::connect("127.0.0.1:15206").expect("it listens"));
    let received = listener.wait_with_output().expect("it ends");
    assert_eq!(received.status.code(), Some(1));
}

#[test]
fn a_listener_ends_at_its_time_when_the_stream_goes_on() {
    let listener = listen(&["127.0.0.1:15207", "--duration", "1", "--format", "json"]);
    let peer = TcpStream::connect("127.0.0.1:15207").expect("it listens");
    (&peer).write_all(b"hello").expect("sent");
    let received = listener.wait_with_output().expect("it ends");
    assert!(received.status.success(), "{received:?}");
    assert_eq!(json(&received)["bytes"], 5);
}

#[test]
fn what_is_lacking_is_one_line_that_names_it_and_the_exit_code_is_1() {
    for (arguments, named) in [
        (&["listen", "127.0.0.1:15204"][..], "--queue"),
        (&["listen", "15204", "--queue", "0"], "--interface"),
        (
            &[
                "listen",
                "127.0.0.1:15204",
                "--interface",
                "no-such-if",
                "--queue",
                "0",
            ],
            "no-such-if",
        ),
        (
            &["connect", "127.0.0.1:1", "--memory", "ram"],
            "connecting to 127.0.0.1:1",
        ),
        (&["steer", "lo", "--queue", "0", "--port", "5201"], "lo"),
        (&["show", "no-such-if"], "no-such-if"),
    ] {
        let output = tool(arguments).output().expect("the tool runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let last = text.lines().last().unwrap_or_default();
        // A machine without udmabuf lacks that first.
        assert!(
            last.contains(named) || last.contains("/dev/udmabuf"),
            "{arguments:?}: {text}"
        );
    }
    let output = tool(&["listen", "no-port"])
        .output()
        .expect("the tool runs");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn progress_is_shown_on_a_terminal_and_a_pipe_has_one_line() {
    const PATIENCE: Option<u64> = Some(60_000);
    let listener = listen(&["127.0.0.1:15211"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_devmem-tcp"));
    command.args(["connect", "127.0.0.1:15211", "--bytes", "2G"]);
    command.args(["--mode", "ordinary", "--memory", "ram"]);
    let mut sender = rexpect::session::spawn_command(command, PATIENCE).expect("it starts");
    sender.exp_regex("sent [0-9.]+ .iB, ").expect("progress");
    sender.exp_string("2147483648 bytes").expect("the result");
    sender.exp_eof().expect("its end");
    let received = listener.wait_with_output().expect("it ends");
    assert!(received.status.success(), "{received:?}");
    // Its first line was read: it listens.
    let errors = String::from_utf8_lossy(&received.stderr);
    assert_eq!(errors, "", "a pipe is no terminal");

    let mut command = Command::new(env!("CARGO_BIN_EXE_devmem-tcp"));
    command.args(["show", "lo", "--watch=0.1"]);
    let mut shown = rexpect::session::spawn_command(command, PATIENCE).expect("it starts");
    for _ in 0..3 {
        shown.exp_string("\x1b[H").expect("it is drawn again");
        shown.exp_string("lo (1)").expect("the interface");
    }
}
