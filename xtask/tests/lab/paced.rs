// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tool of devmem-tcp over a wire with a rate.

use protocol::measure::PacedWire;

use crate::tool::{parts, reports};
use crate::{run, stderr};

/// Bits per second, of which a guest on an emulated processor keeps a wire busy: as in xtask/src/wire.
const RATE: u32 = 10_000_000;
const MTU: u64 = 9000;

#[test]
fn the_tools_figures_are_those_of_the_wires_rate() {
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
    let ends = parts(&["--model", "nobounce", "--link", &link], script);
    // Payload of full packets by what they take on the wire: headers of IPv4 and TCP with timestamps.
    let payload = (MTU - 52) as f64 / (MTU + PacedWire::HEADER + PacedWire::PER_FRAME) as f64;
    let ceiling = f64::from(RATE) * payload;
    let reports = reports(&ends);
    assert_eq!(reports[0]["valid"], true);
    for report in reports {
        assert_eq!(report["bytes"], 24 << 20, "{report}");
        let share = report["bits_per_second"].as_f64().unwrap() / ceiling;
        assert!((share - 1.0).abs() < 0.01, "{share}: {report}");
    }
}

#[test]
fn a_link_takes_our_model_and_is_checked() {
    for (options, named) in [
        (&["--link", "rate=1000000"][..], "--model nobounce"),
        (&["--link", "speed=1", "--model", "nobounce"], "delay-us"),
        (&["--link", "rate=0", "--model", "nobounce"], "not zero"),
    ] {
        let output = run(options, "true");
        assert!(!output.status.success());
        assert!(stderr(&output).contains(named), "{}", stderr(&output));
    }
}
