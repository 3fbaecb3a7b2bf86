// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs in the lab: as if they ran here, but in a guest with our NICs.

mod archive;
mod check;
mod enter;
mod gdb;
mod inside;
mod library;
mod new_driver;
mod nic;
mod own_nic;
mod paced;
mod recipes;
mod steer;
mod terminal;
mod tool;
mod users;

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// How long a terminal may say nothing, in milliseconds. It is there to end a hang.
const PATIENCE: u64 = 300_000;

/// A server that nobody talks to.
const LISTEN: &str =
    "exec perl -MIO::Socket::INET -e 'IO::Socket::INET->new(Listen => 1, LocalPort => 9)->accept'";

/// Arguments in front of a program.
const NONE: &[&str] = &[];

fn exec(options: &[&str], program: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nobounce"));
    command.arg("exec").args(options).arg("--").args(program);
    command.stdin(Stdio::null());
    command
}

/// A recipe of Documentation/recipes.
fn recipe(name: &str) -> String {
    format!(
        "{}/../Documentation/recipes/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// Runs a shell script in the lab.
fn run(options: &[&str], script: &str) -> Output {
    exec(options, &["sh", "-c", script]).output().unwrap()
}

#[track_caller]
fn assert_status(output: &Output, status: i32) {
    assert_eq!(
        output.status.code(),
        Some(status),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
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
    let mut command = exec(
        NONE,
        &["sh", "-c", "pwd; cat note; echo; echo $GREETING; exit 7"],
    );
    let output = command
        .current_dir(dir.path())
        .env("GREETING", "good morning")
        .output()
        .unwrap();
    assert_status(&output, 7);
    let folder = dir.path().display();
    assert_eq!(
        stdout(&output),
        format!("{folder}\nof the host\ngood morning\n")
    );
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
        ls $NOBOUNCE_LOGS/console.log
    ";
    let output = exec(NONE, &["bash", "-c", script]).output().unwrap();
    assert_status(&output, 0);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..4], ["Connection refused"; 4], "{text}");
    assert_eq!(lines[4], lines[5], "{text}");
    let interfaces = ["ctl0", "lo", "nic0"].map(|name| format!("/sys/class/net/{name}/"));
    assert_eq!(lines[6].trim(), interfaces.join(" "), "{text}");
    assert!(lines[7].ends_with("/console.log"), "{text}");
    let line = stderr(&output);
    assert!(
        line.starts_with("lab") && line.contains(": nic0 ") && line.contains("logs in /"),
        "{line}"
    );
}

#[test]
fn what_is_changed_is_gone_afterwards_but_in_rw_folders() {
    let (kept, lost) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (kept, lost) = (kept.path().display(), lost.path().display());
    let script = format!("echo a > {kept}/a && echo b > {lost}/b && rm -r {lost} && ls {kept}");
    let output = run(&["--rw", &kept.to_string()], &script);
    assert_status(&output, 0);
    assert_eq!(stdout(&output), "a\n");
    assert_eq!(fs::read_to_string(format!("{kept}/a")).unwrap(), "a\n");
    assert_eq!(fs::read_dir(lost.to_string()).unwrap().count(), 0);
}

#[test]
fn input_goes_in_and_output_and_errors_come_out_apart() {
    let input: Vec<u8> = (0..3_000_000_u32)
        .map(|i| (i * 7 + i / 251) as u8)
        .collect();
    let mut child = exec(NONE, &["sh", "-c", "cat; echo done >&2"])
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
    assert_status(&run(NONE, "kill -KILL $$"), 128 + 9);
    assert_status(
        &exec(&["--timeout", "1"], &["sleep", "1000"])
            .output()
            .unwrap(),
        124,
    );
    let missing = exec(NONE, &["no-such-program"]).output().unwrap();
    assert_status(&missing, 127);
    assert!(
        stderr(&missing).contains("no-such-program"),
        "{}",
        stderr(&missing)
    );
    assert_status(&exec(NONE, &["/etc/passwd"]).output().unwrap(), 126);
}

#[test]
fn signals_reach_the_program() {
    let script = "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.1; done";
    let mut child = exec(NONE, &["sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
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
fn a_program_whose_output_nobody_reads_any_more_gets_sigpipe() {
    let mut child = exec(NONE, &["yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 2];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut line).unwrap();
    drop(stdout);
    assert_eq!(&line, b"y\n");
    assert_eq!(child.wait().unwrap().code(), Some(128 + 13));
}

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
    .output()
    .unwrap();
    assert_status(&output, 0);
    assert_eq!(stdout(&output), "hello\n");

    let client = format!("perl -MIO::Socket::INET -e \"{}\" 9", client("192.0.2.1"));
    let client = client.replace('$', "\\$");
    let output = exec(&["--serve", "--peer", &client], &["sh", "-c", &perl(5)])
        .output()
        .unwrap();
    assert_status(&output, 9);
    // What the user runs is not.
    assert_eq!(stdout(&output), "over\n");
    let text = stderr(&output);
    assert!(
        text.contains("peer: hello") && text.contains("peer: exit status 9"),
        "{text}"
    );

    // None of them has forever.
    let output = exec(
        &["--timeout", "1", "--peer", &perl(1000)],
        &["sleep", "1000"],
    )
    .output()
    .unwrap();
    assert_status(&output, 124);

    let output = exec(&["--peer", "exit 0"], &["echo", "never"])
        .output()
        .unwrap();
    assert_status(&output, 125);
    assert_eq!(stdout(&output), "");
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
    let output = run(&options, &receive);
    assert_status(&output, 0);
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
fn a_complaint_of_the_kernel_fails_the_run_whatever_the_program_says() {
    let output = run(
        NONE,
        "echo 'BUG: what a program does to the kernel' > /dev/kmsg",
    );
    assert_status(&output, 125);
    let text = stderr(&output);
    assert!(
        text.contains("what a program does") && text.contains("console.log"),
        "{text}"
    );
}

#[test]
fn a_complaint_of_the_peers_kernel_fails_the_run_too() {
    let peer = format!("echo 'BUG: of the peer' > /dev/kmsg; {LISTEN}");
    let output = run(&["--guests", "2", "--peer", &peer], "true");
    assert_status(&output, 125);
    let text = stderr(&output);
    assert!(
        text.contains("of the peer") && text.contains("console.log"),
        "{text}"
    );
}

#[test]
fn a_bare_guest_is_as_the_kernel_made_it() {
    let output = run(
        &["--bare"],
        "ls -d /sys/class/net/*/; env | grep -c NOBOUNCE_NIC",
    );
    assert_eq!(stdout(&output), "/sys/class/net/lo/\n0\n");
    assert_status(&output, 1);
}
