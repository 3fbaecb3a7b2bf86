// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the lab shows of a program's work: counts and captures.

use std::fs;
use std::process::Command;

use crate::{assert_status, exec, run, stderr};

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
    let compiled = Command::new("gcc")
        .args(["-O1", "-I"])
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../harness/marker/include"
        ))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert_status(&compiled, 0);

    let output = exec(&["--counted"], &[&program]).output().unwrap();
    assert_status(&output, 0);
    let text = stderr(&output);
    let [instructions, loaded, stored] = counts(&text, 0);
    // Beside it the kernel has a timer.
    let rounds = f64::from(1 << 17);
    assert!((4.0..9.0).contains(&(instructions / rounds)), "{text}");
    assert!(
        (1.0..1.5).contains(&loaded) && (1.0..1.5).contains(&stored),
        "{text}"
    );
    assert!(counts(&text, 1)[0] < rounds / 2.0, "{text}");
    assert!(!text.contains("window 2"), "{text}");
}

#[test]
fn the_whole_run_of_a_program_without_marks_is_counted_beside_what_touches_the_accelerator() {
    let output = run(&["--counted"], "true");
    assert_status(&output, 0);
    let text = stderr(&output);
    assert!(counts(&text, 0)[0] > 10_000.0, "{text}");
    assert!(
        text.contains("accelerator: 0 B loaded, 0 B stored"),
        "{text}"
    );
}

#[test]
fn what_crossed_the_wire_is_copied_where_the_user_wants_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wire.pcap");
    let script = "exec 3<>/dev/udp/$NOBOUNCE_PEER_ADDRESS/9; echo nobody-hears-this >&3";
    let output = exec(&["--pcap", file.to_str().unwrap()], &["bash", "-c", script])
        .output()
        .unwrap();
    assert_status(&output, 0);
    let bytes = fs::read(&file).unwrap();
    assert_eq!(bytes[..4], 0xa1b2_c3d4_u32.to_ne_bytes());
    let sent = b"nobody-hears-this";
    assert!(bytes.windows(sent.len()).any(|window| window == sent));
}
