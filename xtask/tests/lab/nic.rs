// SPDX-License-Identifier: MIT OR Apache-2.0

//! A driver of the user's under the cases.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use rustix::fs::{FlockOperation, flock};

use crate::checkout::{nobounce, root};
use crate::{Ends, assert_says, stderr, stdout};

const DESCRIPTION: &str = r#"
name = "of-a-user"
load = ["i2c-core", "i2c-algo-bit", "of_a_user", "igb"]
build = "."
device = "igb"
bus = "root"
max-mtu = 1500
can = ["traffic"]
"#;

const MODULE: &str = r#"
#include <linux/module.h>
MODULE_DESCRIPTION("of a user");
MODULE_LICENSE("GPL");
"#;

/// Runs cases on the NIC in `dir`, which ends with this status.
fn run(dir: &Path, arguments: &[&str], status: i32) -> Output {
    Command::new(nobounce())
        .args(["test", "--nic", "nic.toml"])
        .args(arguments)
        .current_dir(dir)
        .ended(status)
}

/// As [`run`]; returns what is printed.
fn test(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments, 0);
    stdout(&output) + &stderr(&output)
}

/// JUnit XML has a case as skipped for this reason.
fn assert_skipped(reason: &str) {
    let junit = root().join("target/nextest/nic/of-a-user.xml");
    let junit = fs::read_to_string(junit).unwrap();
    assert_says(&junit, &[&format!("<skipped message=\"{reason}")]);
}

/// How many of the cases whose names have one of `words` ran in a part.
fn ran(dir: &Path, part: &str, words: &[&str]) -> u32 {
    let text = test(dir, &[&["--partition", part], words].concat());
    let (_, count) = text.split_once("of-a-user: ran ").expect("a count");
    count.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_module_of_the_users_is_built_loaded_and_tested_also_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("Kbuild", "obj-m := of_a_user.o\n"),
        ("of_a_user.c", MODULE),
        ("nic.toml", DESCRIPTION),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let words = ["unloads_and_loads_again_while_idle", "jumbo_frame"];
    let text = test(dir.path(), &words);
    assert_says(&text, &["of-a-user has no MTU of 9000"]);
    assert_says(&text, &["of-a-user: ran 1 case, skipped "]);
    assert_skipped("of-a-user has no MTU");

    // In the last minutes of what CI gives.
    let text = test(dir.path(), &["--minutes-left", "3", "jumbo_frame"]);
    assert_says(&text, &["on of-a-user are skipped: they may"]);
    assert_skipped("they may take 4 minutes, of which 3 are left");

    // A part each for two machines.
    let words = [
        "the_drivers_interfaces",
        "unloads_and_loads_again_while_idle",
    ];
    let parts = ["hash:1/2", "hash:2/2"].map(|part| ran(dir.path(), part, &words));
    assert_eq!(parts.iter().sum::<u32>(), 2, "{parts:?}");

    // What another run does.
    let folder = File::open(root().join("target/nobounce/nics/of-a-user")).unwrap();
    flock(&folder, FlockOperation::LockExclusive).unwrap();
    let output = run(dir.path(), &words, 1);
    assert_says(&stderr(&output), &["another run is testing of-a-user"]);

    let output = run(dir.path(), &["--model", "nobounce"], 1);
    assert_says(&stderr(&output), &["of-a-user has `device = \"igb\"`"]);
}
