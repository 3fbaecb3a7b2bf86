// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the lab shows of a program's work: counts and captures.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::checkout::root;
use crate::{Ends, MODELS, assert_says, assert_status, exec, recipe, shell, stderr, stdout};

/// Copies 1 MiB eight bytes at a time, within a window and outside of it.
const COPY: &str = r#"
    #include <nobounce.h>
    static volatile unsigned long from[1 << 17], to[1 << 17];
    static void copy(void)
    {
        for (int i = 0; i < 1 << 17; i++)
            to[i] = from[i];
    }
    int main(void)
    {
        copy();
        nobounce_window_start();
        copy();
        nobounce_window_end();
        copy();
        nobounce_window_start();
        nobounce_window_end();
    }
"#;

/// The same with the crate, in the package of a user's.
const COPY_IN_RUST: &str = r#"
    use std::hint::black_box;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static FROM: [AtomicU64; 1 << 17] = [const { AtomicU64::new(0) }; 1 << 17];
    static TO: [AtomicU64; 1 << 17] = [const { AtomicU64::new(0) }; 1 << 17];
    fn copy() {
        for (from, to) in black_box(&FROM).iter().zip(black_box(&TO)) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
    fn main() {
        copy();
        marker::start();
        copy();
        marker::end();
        copy();
        marker::start();
        marker::end();
    }
"#;

/// The numbers of one window: instructions, MiB loaded, MiB stored.
fn counts(text: &str, window: u32) -> [f64; 3] {
    let head = format!("counted: window {window}: ");
    let line = text.lines().find_map(|line| line.strip_prefix(&head));
    let line = line.unwrap_or_else(|| panic!("no window {window}: {text}"));
    let words: Vec<_> = line.split_whitespace().collect();
    let number = |at: usize| words[at].replace(',', "").parse::<f64>().unwrap();
    let mib = |at: usize| match words[at + 1] {
        "B" => number(at) / f64::from(1 << 20),
        "KiB" => number(at) / 1024.0,
        "MiB" => number(at),
        unit => panic!("{unit} in {line}"),
    };
    [number(0), mib(2), mib(5)]
}

#[test]
fn a_program_in_c_has_counted_what_it_does_between_its_marks() {
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("copy.c"), dir.path().join("copy"));
    fs::write(&source, COPY).unwrap();
    Command::new("gcc")
        .args(["-O1", "-I"])
        .arg(root().join("harness/marker/include"))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .ended(0);
    assert_a_copy_is_counted(&program);
}

#[test]
fn a_program_in_rust_has_counted_what_it_does_between_its_marks() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("src")).unwrap();
    fs::write(dir.path().join("src/main.rs"), COPY_IN_RUST).unwrap();
    let marker = root().join("harness/marker");
    let manifest = format!(
        "[package]\nname = \"copy\"\nedition = \"2024\"\n
        [dependencies]\nmarker = {{ path = {marker:?} }}\n"
    );
    fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--offline", "--target-dir", "target"])
        .current_dir(dir.path())
        .ended(0);
    assert_a_copy_is_counted(&dir.path().join("target/release/copy"));
}

/// Of copies of 1 MiB, one is within a window.
fn assert_a_copy_is_counted(program: &Path) {
    let text = stderr(&exec(&["--counted"], &[program]).ended(0));
    let [instructions, loaded, stored] = counts(&text, 0);
    // Beside it the kernel has a timer.
    let rounds = f64::from(1 << 17);
    assert!((2.0..9.0).contains(&(instructions / rounds)), "{text}");
    assert!(
        (1.0..1.5).contains(&loaded) && (1.0..1.5).contains(&stored),
        "{text}"
    );
    assert!(counts(&text, 1)[0] < rounds / 2.0, "{text}");
    assert!(!text.contains("window 2"), "{text}");
}

#[test]
fn the_whole_run_of_a_program_without_marks_is_counted_beside_what_touches_the_accelerator() {
    let text = stderr(&shell(&["--counted"], "true").ended(0));
    assert!(counts(&text, 0)[0] > 10_000.0, "{text}");
    assert_says(&text, &["accelerator: 0 B loaded, 0 B stored"]);
}

#[test]
fn what_a_program_reads_of_the_accelerators_memory_is_counted() {
    let send = "exec bash -c 'head -c 1M /dev/zero > /dev/tcp/$NOBOUNCE_ADDRESS/5000'";
    let output = exec(
        &["--counted", "--serve", "--peer", send],
        &["python3", &recipe("receive.py"), "accelerator"],
    )
    .ended(0);
    let text = stderr(&output);
    // It makes a checksum of what came. The driver clears the 16 MiB that it is given.
    let line = text.lines().find(|line| line.starts_with("counted: "));
    let (_, touched) = line
        .and_then(|line| line.split_once("accelerator: "))
        .unwrap();
    let (loaded, stored) = touched.split_once(" loaded, ").unwrap();
    let mib: f64 = loaded.strip_suffix(" MiB").unwrap().parse().unwrap();
    assert!(
        (1.0..2.1).contains(&mib) && stored == "16.00 MiB stored",
        "{text}"
    );
}

#[test]
fn what_crossed_the_wire_is_copied_whole_where_the_user_wants_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wire.pcap");
    let sent = format!("{}nobody-hears-this", "and-".repeat(1000));
    let script = format!("exec 3<>/dev/udp/$NOBOUNCE_PEER_ADDRESS/9; echo {sent} >&3");
    for model in MODELS {
        let options = ["--model", model, "--pcap", file.to_str().unwrap()];
        exec(&options, &["bash", "-c", &script]).ended(0);
        let bytes = fs::read(&file).unwrap();
        assert_eq!(bytes[..4], 0xa1b2_c3d4_u32.to_ne_bytes());
        let sent = sent.as_bytes();
        let whole = bytes.windows(sent.len()).any(|window| window == sent);
        assert!(
            whole,
            "{model}: {} bytes, without what was sent",
            bytes.len()
        );
    }
}

#[test]
fn events_of_the_kernel_are_recorded_for_trace_cmd_and_for_perfetto() {
    let output = exec(
        &["--trace", "net:netif_receive_skb", "--trace", "napi:*"],
        &["bash", "-c", "echo hi > /dev/udp/$NOBOUNCE_PEER_ADDRESS/9"],
    )
    .ended(0);
    let text = stderr(&output);
    let line = text.lines().find(|line| line.starts_with("trace: "));
    let line = line.unwrap_or_else(|| panic!("no trace: {text}"));
    assert!(line.ends_with(", 0 events lost"), "{line}");
    let files: Vec<_> = line
        .split_whitespace()
        .filter(|w| w.starts_with('/'))
        .collect();

    let report = Command::new("trace-cmd")
        .args(["report", "-i", files[0]])
        .output()
        .expect("trace-cmd, which `nobounce test` installs");
    assert_status(&report, 0);
    for read in [stdout(&report), fs::read_to_string(files[1]).unwrap()] {
        for event in ["netif_receive_skb", "napi_poll"] {
            let of_peer = |line: &str| line.contains(event) && line.contains("peer0");
            assert!(read.lines().any(of_peer), "no {event} of peer0: {read}");
        }
    }
    let text = fs::read_to_string(files[1]).unwrap();
    assert!(text.starts_with("# tracer: nop\n"), "{text}");
    let mut events = text.lines().filter(|line| !line.starts_with('#'));
    assert!(events.all(|line| is_systrace(line).is_some()), "{text}");
}

/// A line of an event as perfetto's importer of systrace text takes it: a task and its PID, the processor, flags, seconds,
/// the event's name.
fn is_systrace(line: &str) -> Option<()> {
    let (task, rest) = line.split_once(" [")?;
    let (cpu, rest) = rest.split_once("] ")?;
    let (_, pid) = task.trim_end().rsplit_once('-')?;
    let mut words = rest.split_whitespace();
    let flags = words.next()?.len() <= 5;
    let seconds: f64 = words.next()?.strip_suffix(':')?.parse().ok()?;
    words.next()?.strip_suffix(':')?;
    let _: (u32, u32) = (pid.parse().ok()?, cpu.parse().ok()?);
    (flags && seconds > 0.0).then_some(())
}

#[test]
fn an_event_that_the_kernel_does_not_have_is_named() {
    let output = shell(&["--trace", "no:such_event"], "true").ended(125);
    assert_says(&stderr(&output), &["has no event no:such_event"]);
}

/// The line of `--memory-check 8` for the recipe with this argument, on this model of the NIC.
fn memory_check(model: &str, argument: &str) -> String {
    let output = exec(
        &["--model", model, "--memory-check", "8"],
        &["python3", &recipe("receive.py"), argument],
    )
    .ended(0);
    assert!(
        stdout(&output).starts_with("8388608 "),
        "{}",
        stdout(&output)
    );
    let text = stderr(&output);
    let line = text.lines().find(|line| line.starts_with("memory-check: "));
    line.unwrap_or_else(|| panic!("no check: {text}"))
        .to_owned()
}

#[test]
fn what_a_program_receives_is_found_where_it_is() {
    for model in MODELS {
        let accelerator = memory_check(model, "accelerator");
        assert!(
            accelerator
                .contains("8.00 MiB sent to port 5000, all acknowledged; in the guest's RAM: 0 B")
                && !accelerator.ends_with(": 0 B"),
            "{model}: {accelerator}"
        );
    }
    let ram = memory_check("qemu", "ram");
    assert!(
        !ram.contains("RAM: 0 B") && ram.ends_with("where it was received: 0 B"),
        "{ram}"
    );
}
