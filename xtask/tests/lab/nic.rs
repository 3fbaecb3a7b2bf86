// SPDX-License-Identifier: MIT OR Apache-2.0

//! A driver of the user's under the cases.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{assert_status, stderr, stdout};

const DESCRIPTION: &str = r#"
name = "of-a-user"
load = ["i2c-core", "i2c-algo-bit", "of_a_user", "igb"]
build = "."
device = "igb"
max-mtu = 1500
can = ["traffic"]
"#;

const MODULE: &str = r#"
#include <linux/module.h>
MODULE_DESCRIPTION("of a user");
MODULE_LICENSE("GPL");
"#;

#[test]
fn a_module_of_the_users_is_built_loaded_and_tested() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("Kbuild", "obj-m := of_a_user.o\n"),
        ("of_a_user.c", MODULE),
        ("nic.toml", DESCRIPTION),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_nobounce"))
        .args(["test", "--nic", "nic.toml"])
        .args(["unloads_and_loads_again_while_idle", "jumbo_frame"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_status(&output, 0);
    let text = stdout(&output) + &stderr(&output);
    assert!(text.contains("of-a-user has no MTU of 9000"), "{text}");
    assert!(text.contains("of-a-user: ran 1 case, skipped "), "{text}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let junit = root.join("target/nextest/nic/of-a-user.xml");
    let junit = fs::read_to_string(junit).unwrap();
    assert!(
        junit.contains("<skipped message=\"of-a-user has no MTU"),
        "{junit}"
    );
}
