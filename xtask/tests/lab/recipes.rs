// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recipes of Documentation/recipes.md, as a user would paste them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::checkout::{nobounce, root};
use crate::tool::tool;
use crate::{Ends, MODELS, assert_says, exec, recipe, shell, stderr, stdout};

const PAGE: &str = include_str!("../../../Documentation/recipes.md");

/// A terminal of somebody who pastes recipes.
struct Terminal {
    /// Stands for /tmp.
    tmp: TempDir,
}

impl Terminal {
    fn open() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        Self { tmp }
    }

    /// Pastes the page's blocks that contain each of `needles`.
    #[track_caller]
    fn paste(&self, needles: &[&str]) -> Output {
        // The distribution's programs come first: their packages are those that tests install.
        let mut script = format!(
            "set -eo pipefail\nPATH=/usr/bin:/usr/sbin:{}:$PATH\nnobounce() {{ '{}' \"$@\"; }}\n",
            tool().with_file_name("").display(),
            nobounce().display()
        );
        for needle in needles {
            let mut blocks = PAGE.split("```").skip(1).step_by(2);
            let block = blocks.find(|block| block.contains(needle));
            let block = block.unwrap_or_else(|| panic!("no recipe has {needle}"));
            script += &block.replace("/tmp/", &format!("{}/", self.tmp.path().display()));
        }
        Command::new("bash")
            .args(["-c", &script])
            .current_dir(root())
            .ended(0)
    }

    /// Pastes the page's line that begins so, in a folder that has the user's programs in it; returns what is said on
    /// standard error.
    #[track_caller]
    fn paste_line(&self, start: &str) -> String {
        let line = PAGE.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no line begins with {start}"));
        let script = format!(
            "nobounce() {{ '{}' \"$@\"; }}\n{line}",
            nobounce().display()
        );
        let output = Command::new("bash")
            .args(["-ec", &script])
            .current_dir(&self.tmp)
            .ended(0);
        stderr(&output)
    }

    /// A file that a recipe made.
    fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.tmp.path().join(name)).unwrap()
    }
}

/// The first words of lines.
fn words(text: &str) -> Vec<&str> {
    let words = text.lines().map(|line| line.split(' ').next());
    words.map(Option::unwrap_or_default).collect()
}

#[test]
fn iperf3_and_curl_reach_servers_at_the_other_end() {
    let output = Terminal::open().paste(&["iperf3 -s -1' -- sh -c 'iperf3"]);
    assert_says(&stdout(&output), &["iperf Done.", "</html>"]);
}

#[test]
fn the_lines_that_look_inside_say_what_the_page_says() {
    let terminal = Terminal::open();
    let folder = terminal.tmp.path();
    // Nothing listens there.
    let script = "#!/bin/bash\n! (: < /dev/tcp/$NOBOUNCE_PEER_ADDRESS/9) 2> /dev/null\n";
    for program in ["my-test", "my-receiver"] {
        let program = folder.join(program);
        fs::write(&program, script).unwrap();
        fs::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
    }
    symlink(root().join("Documentation"), folder.join("Documentation")).unwrap();

    let text = terminal.paste_line("nobounce exec --counted ");
    let counted =
        |line: &str| line.starts_with("counted: window 0: ") && line.contains(" instructions, ");
    assert!(text.lines().any(counted), "{text}");
    let text = terminal.paste_line("nobounce exec --memory-check ");
    let said = "memory-check: 16.00 MiB sent to port 5000, all acknowledged; in the guest's RAM: 0 B; in the accelerator";
    assert!(PAGE.contains(said) && text.contains(said), "{text}");
    let text = terminal.paste_line("nobounce exec --trace ");
    let trace = text
        .split_whitespace()
        .find(|word| word.ends_with("trace.dat"));
    let trace = trace.unwrap_or_else(|| panic!("no trace is named: {text}"));
    assert!(
        fs::read(trace).unwrap().starts_with(b"\x17\x08\x44tracing"),
        "{trace}"
    );
    terminal.paste_line("nobounce exec --pcap ");
    assert!(
        terminal.file("wire.pcap").len() > 2 * 98,
        "two frames of ping"
    );
}

#[test]
fn between_two_guests_a_stream_passes() {
    let output = Terminal::open().paste(&["--guests 2 --peer"]);
    assert_says(&stdout(&output), &["iperf Done."]);
}

#[test]
fn a_wire_that_is_slow_and_loses_frames_carries_a_stream() {
    let output = Terminal::open().paste(&["--link rate="]);
    assert_says(&stdout(&output), &["iperf Done."]);
}

#[test]
fn an_iommu_maps_what_the_devices_reach() {
    let text = stdout(&Terminal::open().paste(&["--iommu"]));
    let said = text.lines().any(|line| line == "DMA");
    assert!(said && text.contains("iperf Done."), "{text}");
}

#[test]
fn the_tool_moves_payload_from_one_accelerator_to_another() {
    let output = Terminal::open().paste(&["devmem-tcp connect"]);
    let said = ["all bytes are those of the seed", "direct 67108864;"];
    assert_says(&stdout(&output), &said);
}

#[test]
fn a_program_in_python_receives_into_a_dma_buf() {
    let terminal = Terminal::open();
    let text = stdout(&terminal.paste(&["sha256sum /tmp/payload\nnobounce"]));
    let [sent, received] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}");
    };
    let bytes = terminal.file("payload").len();
    assert_eq!(received, format!("{bytes} {}", words(sent)[0]));
}

/// Says what an ordinary connection receives over each of the two wires.
const ORDINARY: &str = r#"
import errno, os, socket, subprocess
for name in "NOBOUNCE_ADDRESS", "NOBOUNCE_CONTROL_ADDRESS":
    address = os.environ[name]
    server = socket.create_server((address, 6000))
    send = f"echo hello > /dev/tcp/{address}/6000"
    subprocess.Popen(["ip", "netns", "exec", os.environ["NOBOUNCE_PEER_NETNS"], "bash", "-c", send])
    try:
        print(server.accept()[0].recv(100).decode().strip())
    except OSError as error:
        print(errno.errorcode[error.errno])
"#;

#[test]
fn what_an_ordinary_connection_is_refused_while_memory_is_bound_the_second_wire_carries() {
    let script = format!(
        "python3 {} & until grep -q :1388 /proc/net/tcp; do kill -0 $! || exit; sleep 0.1; done
        python3 -c '{ORDINARY}'; kill $!",
        recipe("receive.py")
    );
    for model in MODELS {
        let output = exec(&["--model", model], &["bash", "-c", &script]).ended(0);
        assert_eq!(stdout(&output), "EFAULT\nhello\n", "{model}");
    }
}

#[test]
fn a_single_port_is_steered_to_the_queue() {
    let text = stdout(&Terminal::open().paste(&["--port 5000"]));
    assert_eq!(text.split(' ').next(), Some("1048576"), "{text}");
}

#[test]
fn sixteen_connections_of_a_program_in_rust_pass_from_one_device_memory_to_another_and_are_verified()
 {
    let output = Terminal::open().paste(&["cargo build --release -p devmem-tcp"]);
    let received = "16 connections: 1073741824 bytes in device memory, 0 elsewhere, verified\n";
    assert!(stdout(&output).ends_with(received), "{}", stdout(&output));
    let sent = "16 connections: 1073741824 bytes sent, 0 of them copied by the kernel";
    assert_says(&stderr(&output), &[sent]);
}

#[test]
fn a_program_in_c_receives_by_io_uring_into_its_own_memory() {
    let terminal = Terminal::open();
    let output = terminal.paste(&["-o /tmp/zcrx"]);
    let text = stdout(&output);
    // What `make` says comes before.
    let sums: Vec<_> = words(&text)
        .into_iter()
        .filter(|word| word.len() == 64)
        .collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{text}");
    let count = format!("{} bytes\n", terminal.file("payload").len());
    assert_says(&stderr(&output), &[&count]);
}

#[test]
fn ncdevmem_sends_out_of_one_dma_buf_and_receives_into_another() {
    let text = stdout(&Terminal::open().paste(&["ncdevmem.sh \"$LINUX\""]));
    let lines: String = (1..=200).map(|line| format!("{line}\n")).collect();
    assert!(text.ends_with(&lines), "{text}");
}

#[test]
fn ip_tc_ethtool_and_ynl_of_this_machine_show_the_nic() {
    let terminal = Terminal::open();
    // The first line is about a program of the user's.
    let output = terminal.paste(&["--dump queue-get"]);
    assert_says(&stdout(&output), &["'napi-id'", "'type': 'tx'"]);
    let page = PAGE.lines().filter(|line| line.contains(" nic0"));
    let commands: Vec<_> = page
        .filter_map(|line| line.split_once("nobounce exec -- "))
        .collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    let script: Vec<_> = commands.iter().map(|(_, command)| *command).collect();
    let output = shell(&[], &script.join(" && ")).ended(0);
    assert_says(&stdout(&output), &["mtu 9000", "qdisc mq", "rx_split:"]);
}

#[test]
fn perf_traces_the_kernel_while_a_program_runs() {
    let output = Terminal::open().paste(&["perf trace"]);
    // Not every perf prints the interface's name.
    assert_says(&stderr(&output), &["napi:napi_poll("]);
    assert_says(&stdout(&output), &["iperf Done."]);
}
