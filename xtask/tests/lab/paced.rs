// SPDX-License-Identifier: MIT OR Apache-2.0

//! Wires with a rate.

use crate::{run, stderr};

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
