// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs at both ends of the wire, in one guest or in two.

use std::fs;
use std::process::Command;

use crate::{Ends, NONE, assert_says, exec, recipe, shell, stderr, stdout};

/// A server that nobody talks to.
const LISTEN: &str =
    "exec perl -MIO::Socket::INET -e 'IO::Socket::INET->new(Listen => 1, LocalPort => 9)->accept'";

#[test]
fn a_client_starts_when_its_server_listens_and_both_must_succeed() {
    // perl is in every Debian. The server goes on for a while after its client.
    let server = "
        $s = IO::Socket::INET->new(Listen => 1, LocalPort => 8000) or die;
        $c = $s->accept;
        print $c qq(hello\n);
        close $c;
        sleep shift;
        print qq(over\n);
    ";
    let client = |address| {
        format!("$s = IO::Socket::INET->new('{address}:8000') or die; print <$s>; exit shift")
    };
    let perl = |seconds| format!("sleep 1; exec perl -MIO::Socket::INET -e '{server}' {seconds}");
    // The peer is ended.
    let output = exec(
        &["--peer", &perl(1000)],
        &[
            "perl",
            "-MIO::Socket::INET",
            "-e",
            &client("192.0.2.2"),
            "0",
        ],
    )
    .ended(0);
    assert_eq!(stdout(&output), "hello\n");

    let client = format!("perl -MIO::Socket::INET -e \"{}\" 9", client("192.0.2.1"));
    let client = client.replace('$', "\\$");
    let output = shell(&["--serve", "--peer", &client], &perl(5)).ended(9);
    // What the user runs is not.
    assert_eq!(stdout(&output), "over\n");
    assert_says(&stderr(&output), &["peer: hello", "peer: exit status 9"]);

    // What the user runs does not wait for a client that failed.
    let output = shell(&["--serve", "--peer", "exit 3"], &perl(5)).ended(3);
    assert_eq!(stdout(&output), "");

    // None of them has forever.
    exec(
        &["--timeout", "1", "--peer", &perl(1000)],
        &["sleep", "1000"],
    )
    .ended(124);

    let output = exec(&["--peer", "exit 0"], &["echo", "never"]).ended(125);
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_server_that_does_not_listen_for_long_is_said_to_be_waited_for_and_the_way_out_works() {
    let output = exec(&["--peer", &format!("sleep 4; {LISTEN}")], &["true"]).ended(0);
    let said = stderr(&output);
    let lines: Vec<_> = said
        .lines()
        .filter(|line| line.contains("waiting until"))
        .collect();
    let [line] = lines[..] else {
        panic!("{said}");
    };
    assert_says(line, &["the peer listens on a TCP port"]);
    assert_says(line, &["ip netns exec $NOBOUNCE_PEER_NETNS"]);

    let both = r#"
        ip netns exec $NOBOUNCE_PEER_NETNS perl -MIO::Socket::INET -e '
            $s = IO::Socket::INET->new(Proto => "udp", LocalPort => 9) or die;
            $s->recv($text, 9);
            print $text;' &
        while kill -0 $! 2> /dev/null; do
            echo hello > /dev/udp/$NOBOUNCE_PEER_ADDRESS/9
            sleep 0.2
        done
    "#;
    let output = exec(NONE, &["bash", "-c", both]).ended(0);
    assert_eq!(stdout(&output), "hello\n");
}

#[test]
fn with_two_guests_the_peer_is_a_machine_of_its_own_and_payload_crosses_between_them() {
    payload_crosses_between_machines("qemu");
}

#[test]
fn with_two_guests_payload_crosses_between_our_models_too() {
    payload_crosses_between_machines("nobounce");
}

/// Sends payload from one guest to another, whose NICs are this model of the 82576.
fn payload_crosses_between_machines(model: &str) {
    let bytes: Vec<u8> = (0..5_000_000_u32)
        .map(|i| (i * 5 + i / 999) as u8)
        .collect();
    let payload = tempfile::NamedTempFile::new().unwrap();
    fs::write(payload.path(), &bytes).unwrap();
    let send = format!(
        "cat /proc/sys/kernel/random/boot_id; ls /sys/class/net | tr '\n' ' '; echo
         bash -c 'cat {} > /dev/tcp/192.0.2.1/5000'",
        payload.path().display()
    );
    let receive = format!(
        "cat /proc/sys/kernel/random/boot_id; ls /sys/class/net | tr '\n' ' '; echo
         exec python3 {}",
        recipe("receive.py")
    );
    let options = [
        "--guests", "2", "--model", model, "--serve", "--peer", &send,
    ];
    let output = shell(&options, &receive).ended(0);
    let (ours, theirs) = (stdout(&output), stderr(&output));
    let peers: Vec<_> = theirs
        .lines()
        .filter_map(|line| line.strip_prefix("peer: "))
        .collect();
    let lines: Vec<_> = ours.lines().collect();
    assert!(
        lines[0].len() == 36 && peers[0].len() == 36 && lines[0] != peers[0],
        "{ours}{theirs}"
    );
    assert!(
        lines[1].contains("nic0") && !lines[1].contains("peer0"),
        "{ours}"
    );
    assert!(
        peers[1].contains("peer0") && !peers[1].contains("nic0"),
        "{theirs}"
    );
    let sum = Command::new("sha256sum")
        .arg(payload.path())
        .output()
        .unwrap();
    let sum = stdout(&sum);
    let sum = sum.split_whitespace().next().unwrap();
    assert_eq!(lines[2], format!("{} {sum}", bytes.len()));
}

#[test]
fn a_complaint_of_the_peers_kernel_fails_the_run_too() {
    let peer = format!("echo 'BUG: of the peer' > /dev/kmsg; {LISTEN}");
    let output = shell(&["--guests", "2", "--peer", &peer], "true").ended(125);
    assert_says(&stderr(&output), &["of the peer", "console.log"]);
}
