// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tool of devmem-tcp over a wire with a rate.

use std::fs;
use std::path::Path;

use protocol::measure::PacedWire;

use crate::tool::{parts, reports};
use crate::{assert_says, shell, stderr};

/// Bits per second, of which a guest on an emulated processor keeps a wire busy: as in xtask/src/wire.
const RATE: u32 = 10_000_000;
const MTU: u64 = 9000;
/// Where the tool listens.
const PORT: u16 = 5201;

#[test]
fn the_tools_figures_are_those_of_the_wires_rate_and_of_its_capture() {
    // Sockets as xtask/src/wire has them: one must bridge what the guest waits for a busy host, and not
    // overflow the wire's queue.
    let script = r#"
        sysctl -qw net.core.rmem_max=16777216 || exit
        ip netns exec $NOBOUNCE_PEER_NETNS sysctl -qw net.ipv4.tcp_wmem="4096 65536 1572864" || exit
        # What takes a busy machine long at the beginning and at the end is little of 20 s.
        transfer "--queue 1 --steer none --validate 7 --format json" \
            "--mode ordinary --memory ram --bytes 24M --validate 7 --format json"
    "#;
    let link = format!("rate={RATE}");
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("wire.pcap");
    let options = [
        "--model",
        "nobounce",
        "--link",
        &link,
        "--pcap",
        capture.to_str().unwrap(),
    ];
    let ends = parts(&options, script);
    let on_wire = captured_rate(&capture);
    // Payload of full packets by what they take on the wire: headers of IPv4 and TCP with timestamps.
    let payload = (MTU - 52) as f64 / (MTU + PacedWire::HEADER + PacedWire::PER_FRAME) as f64;
    let ceiling = f64::from(RATE) * payload;
    let reports = reports(&ends);
    assert_eq!(reports[0]["valid"], true);
    for report in reports {
        assert_eq!(report["bytes"], 24 << 20, "{report}");
        let reported = report["bits_per_second"].as_f64().unwrap();
        for rate in [ceiling, on_wire] {
            let share = reported / rate;
            assert!((share - 1.0).abs() < 0.01, "{share} of {rate}: {report}");
        }
    }
}

/// Bits of TCP payload per second that came to the tool's port, by a capture of the wire.
fn captured_rate(file: &Path) -> f64 {
    let bytes = fs::read(file).unwrap();
    let (_, mut rest) = bytes.split_at(24);
    let mut came = Vec::new();
    while let Some((record, behind)) = rest.split_first_chunk::<16>() {
        let word = |at: usize| u32::from_ne_bytes(record[at..at + 4].try_into().unwrap());
        let (frame, behind) = behind.split_at(word(8) as usize);
        rest = behind;
        let number = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        // IPv4 without options, and TCP (RFC 791, RFC 9293).
        if frame[12..15] == [8, 0, 0x45] && frame[23] == 6 && number(36) == PORT {
            let headers = 20 + u16::from(frame[46] >> 4) * 4;
            let time = f64::from(word(0)) + f64::from(word(4)) / 1e6;
            came.push((time, number(16) - headers));
        }
    }
    came.retain(|&(_, payload)| payload > 0);
    let (first, rest) = came.split_first().expect("payload is in the capture");
    // The first packet's own time on the wire was before it came.
    let payload: f64 = rest.iter().map(|&(_, payload)| f64::from(payload)).sum();
    8.0 * payload / (rest.last().unwrap().0 - first.0)
}

#[test]
fn a_link_takes_our_model_and_is_checked() {
    for (options, named) in [
        (&["--link", "rate=1000000"][..], "--model nobounce"),
        (&["--link", "speed=1", "--model", "nobounce"], "delay-us"),
        (&["--link", "rate=0", "--model", "nobounce"], "not zero"),
    ] {
        let output = shell(options, "true").output().unwrap();
        assert!(!output.status.success());
        assert_says(&stderr(&output), &[named]);
    }
}
