// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs in the lab: as if they ran here, but in a guest with our NICs.

mod archive;
mod check;
#[path = "../checkout/mod.rs"]
mod checkout;
mod enter;
mod fuzz;
mod gdb;
mod given;
mod inside;
mod library;
mod matrix;
mod new_driver;
mod nic;
mod own_nic;
mod paced;
mod peer;
mod recipes;
mod rss_contexts;
mod signals;
mod steer;
mod terminal;
mod tool;
mod users;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use self::checkout::{nobounce, root};

/// How long a terminal may say nothing, in milliseconds. It is there to end a hang.
const PATIENCE: u64 = 300_000;

/// The models of the 82576 that a guest may have.
const MODELS: [&str; 2] = ["qemu", "nobounce"];

/// Arguments in front of a program.
const NONE: &[&str] = &[];

fn exec(options: &[&str], program: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(nobounce());
    command.arg("exec").args(options).arg("--").args(program);
    command.stdin(Stdio::null());
    command
}

/// A recipe of Documentation/recipes.
fn recipe(name: &str) -> String {
    format!("{}/Documentation/recipes/{name}", root().display())
}

/// A shell script in the lab.
fn shell(options: &[&str], script: &str) -> Command {
    exec(options, &["sh", "-c", script])
}

/// What is run to its end.
trait Ends {
    /// Its output, after it has ended with this status.
    fn ended(&mut self, status: i32) -> Output;
}

impl Ends for Command {
    #[track_caller]
    fn ended(&mut self, status: i32) -> Output {
        let output = self.output().unwrap();
        assert_status(&output, status);
        output
    }
}

#[track_caller]
fn assert_status(output: &Output, status: i32) {
    let (out, err) = (stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(status), "{out}{err}");
}

/// Asserts that a text has all of these parts.
#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part}: {text}");
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_program_has_the_folder_files_and_environment_that_it_would_have_here() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("note"), "of the host").unwrap();
    let output = shell(NONE, "pwd; cat note; echo; echo $GREETING; exit 7")
        .current_dir(dir.path())
        .env("GREETING", "good morning")
        .ended(7);
    let folder = dir.path().display();
    assert_eq!(
        stdout(&output),
        format!("{folder}\nof the host\ngood morning\n")
    );
}

#[test]
fn a_guest_goes_on_from_where_one_like_it_was_set_up() {
    // When it was booted, by its own clock in microseconds, and the time of day.
    let script = "dmesg | grep -m1 'Run /init'; date +%s; cat /proc/sys/kernel/random/uuid; \
                  ip -br addr show $NOBOUNCE_NIC >&2 && test -c $NOBOUNCE_ACCELERATOR";
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().to_str().unwrap();
    let mut known = Vec::new();
    // Another test may be taking the snapshot: guests that are started meanwhile boot.
    for _ in 0..4 {
        let before = now();
        let output = shell(&["--memory", "2052", "--rw", kept], script)
            .env("NOBOUNCE_ACCEL", "tcg")
            .ended(0);
        let text = stdout(&output);
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let [booted, time, random] = lines.try_into().unwrap();
        let time: u64 = time.parse().unwrap();
        assert!(
            (before..=now()).contains(&time),
            "{before}, {time}, {}",
            now()
        );
        let alike = known.iter().any(|(other, _)| *other == booted);
        assert!(known.iter().all(|(_, other)| *other != random), "{random}");
        if alike {
            return;
        }
        known.push((booted, random));
    }
    panic!("all of them booted: {known:?}");
}

/// The time of day, in seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs()
}

#[test]
fn what_the_guest_has_of_its_own_is_refused_before_it_boots() {
    for (options, folder, named) in [
        (NONE, "/dev/shm", "working directory"),
        (&["--rw", "/run"], "/", "--rw"),
        (&["--rw", "/"], "/", "--rw"),
    ] {
        let output = exec(options, &["true"]).current_dir(folder).ended(125);
        assert_says(&stderr(&output), &[named, "folder"]);
    }
}

#[test]
fn a_name_that_is_no_text_is_named_and_refused_before_a_guest_boots() {
    let name = OsStr::from_bytes(b"caf\xe9");
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(name);
    fs::create_dir(&folder).unwrap();
    let within = exec(NONE, &["true"]).current_dir(&folder).ended(125);
    let kept = exec(&["--rw", "."], &["true"])
        .current_dir(&folder)
        .ended(125);
    let passed = exec(NONE, &[OsStr::new("echo"), name]).ended(2);
    for (output, named) in [
        (within, "working directory"),
        (kept, "directory"),
        (passed, "the argument"),
    ] {
        assert_says(&stderr(&output), &[named, r"caf\xE9", "UTF-8"]);
    }
    // Files that no guest is told about may have any name.
    let kernel = Command::new(nobounce())
        .args(["kernel", "--kdir"])
        .arg(&folder)
        .ended(1);
    assert_says(&stderr(&kernel), &["is no kernel tree"]);
}

#[test]
fn the_lab_is_set_up_and_said_in_variables_and_in_a_line() {
    // Nothing listens there, which only a host that was reached can say.
    let script = "
        set -e
        for address in 127.0.0.1 $NOBOUNCE_PEER_ADDRESS $NOBOUNCE_PEER_ADDRESS6 $NOBOUNCE_CONTROL_PEER_ADDRESS6; do
            (: < /dev/tcp/$address/9) 2>&1 | grep -o 'Connection refused' | head -1
        done
        cat /sys/class/net/$NOBOUNCE_NIC/ifindex
        echo $NOBOUNCE_IFINDEX
        test -c $NOBOUNCE_ACCELERATOR
        ls -d /sys/class/net/*/ | tr '\n' ' '
        echo
        ls $NOBOUNCE_LOGS | grep -E '^(console.log|wire[0-9].pcap)$' | tr '\n' ' '
    ";
    let output = exec(NONE, &["bash", "-c", script]).ended(0);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..4], ["Connection refused"; 4], "{text}");
    assert_eq!(lines[4], lines[5], "{text}");
    let interfaces = ["ctl0", "lo", "nic0"].map(|name| format!("/sys/class/net/{name}/"));
    assert_eq!(lines[6].trim(), interfaces.join(" "), "{text}");
    assert_eq!(
        lines[7].trim(),
        "console.log wire0.pcap wire1.pcap",
        "{text}"
    );
    let said = stderr(&output);
    let is_about_the_lab = |line: &str| {
        line.starts_with("lab") && line.contains(": nic0 ") && line.contains("logs in /")
    };
    assert!(said.lines().any(is_about_the_lab), "{said}");
}

#[test]
fn where_there_are_flow_rules_ordinary_connections_come_over_the_nic_that_has_a_bound_queue() {
    // It has bound the queue when it listens.
    let peer = r#"exec python3 -c "
import os, socket, time
def connect(port):
    while True:
        try:
            return socket.create_connection((os.environ['NOBOUNCE_ADDRESS'], port))
        except ConnectionRefusedError:
            time.sleep(0.1)
bound, ordinary = connect(5000), connect(6000)
ordinary.sendall(b'in RAM')
assert ordinary.recv(9) == b'seen'
bound.sendall(bytes(1 << 20))
""#;
    let server = "
import socket
stream, _ = socket.create_server(('', 6000)).accept()
assert stream.recv(9) == b'in RAM'
stream.sendall(b'seen')";
    let receive = recipe("receive.py");
    let script =
        format!("python3 -c \"{server}\" & python3 {receive} && wait $! && ethtool -n nic0");
    let options = [
        "--model", "nobounce", "--port", "5000", "--serve", "--peer", peer,
    ];
    let output = shell(&options, &script).ended(0);
    let (text, said) = (stdout(&output), stderr(&output));
    assert!(
        text.starts_with("1048576 ") && text.contains("Total 2 rules"),
        "{text}"
    );
    assert_says(&said, &[", TCP to port 5000 to queue 1;"]);

    let refused = shell(&["--port", "5000"], "true").ended(125);
    assert_says(&stderr(&refused), &["--model nobounce"]);
}

#[test]
fn the_kernel_has_what_scripts_and_ordinary_network_tests_want() {
    let script = "
        set -e
        PATH=$PATH:/usr/sbin:/sbin
        printf '#!/bin/sh\necho a script\n' > /tmp/script
        chmod +x /tmp/script
        /tmp/script
        ip link add pair0 type veth peer name pair1
        ip link add bridge0 type bridge
        ip link set pair0 master bridge0
        ip link add bond0 type bond
        ip link set pair1 master bond0
        tc qdisc add dev pair0 root netem delay 1ms
        tc qdisc replace dev nic0 root fq
        for link in pair0 pair1; do ip -br link show $link | cut -d' ' -f1; done
        tc qdisc show dev nic0 | cut -d' ' -f2
        test -e /sys/bus/virtio/drivers/virtio_blk
        grep ext4 /proc/filesystems
        cat /sys/module/udmabuf/parameters/size_limit_mb
    ";
    let output = shell(NONE, script).ended(0);
    assert_eq!(
        stdout(&output),
        "a script\npair0@pair1\npair1@pair0\nfq\n\text4\n1024\n"
    );
}

#[test]
fn what_is_changed_is_gone_afterwards_but_in_rw_folders() {
    // A comma ends a value in QEMU's options.
    let kept = tempfile::Builder::new().suffix(",a").tempdir().unwrap();
    let lost = tempfile::tempdir().unwrap();
    let (kept, lost) = (kept.path().display(), lost.path().display());
    let script = format!("echo a > {kept}/a && echo b > {lost}/b && rm -r {lost} && ls {kept}");
    let output = shell(&["--rw", &kept.to_string()], &script).ended(0);
    assert_eq!(stdout(&output), "a\n");
    assert_eq!(fs::read_to_string(format!("{kept}/a")).unwrap(), "a\n");
    assert_eq!(fs::read_dir(lost.to_string()).unwrap().count(), 0);
}

#[test]
fn input_goes_in_and_output_and_errors_come_out_apart() {
    let input: Vec<u8> = (0..3_000_000_u32)
        .map(|i| (i * 7 + i / 251) as u8)
        .collect();
    let mut child = shell(NONE, "cat; echo done >&2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let copy = input.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&copy));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_status(&output, 0);
    assert!(output.stdout == input, "{} bytes came", output.stdout.len());
    assert!(stderr(&output).ends_with("\ndone\n"), "{}", stderr(&output));
}

#[test]
fn a_program_that_does_not_end_by_itself_has_the_status_that_shells_and_timeout_give() {
    shell(NONE, "kill -KILL $$").ended(128 + 9);
    exec(&["--timeout", "1"], &["sleep", "1000"]).ended(124);
    let deaf = "trap '' TERM; while :; do sleep 1; done";
    shell(&["--timeout", "1"], deaf).ended(124);
    let missing = exec(NONE, &["no-such-program"]).ended(127);
    assert_says(&stderr(&missing), &["no-such-program"]);
    exec(NONE, &["/etc/passwd"]).ended(126);
}

#[test]
fn a_complaint_of_the_kernel_fails_the_run_whatever_the_program_says() {
    let complain = "echo 'BUG: what a program does to the kernel' > /dev/kmsg";
    let output = shell(NONE, complain).ended(125);
    assert_says(&stderr(&output), &["what a program does", "console.log"]);
}

#[test]
fn a_bare_guest_is_as_the_kernel_made_it() {
    let script = "ls -d /sys/class/net/*/; env | grep -c NOBOUNCE_NIC";
    let output = shell(&["--bare"], script).ended(1);
    assert_eq!(stdout(&output), "/sys/class/net/lo/\n0\n");
}
