// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ordinary users, and a checkout that nobody can write to.

use std::process::{Command, Stdio};

use crate::checkout::{nobounce, root};
use crate::{Ends, stderr, stdout};

/// A shell script in namespaces of its own, made with these options of unshare(1).
fn unshare(options: &[&str], script: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(options)
        .args(["sh", "-ec", script])
        .env("NOBOUNCE", nobounce())
        .stdin(Stdio::null());
    command
}

#[test]
fn programs_run_as_root_or_as_the_user_who_has_asked_and_have_device_memory_and_kept_files() {
    let program = "
        id -u
        id -g
        : <> $NOBOUNCE_ACCELERATOR
        : <> /dev/udmabuf
        touch kept
    ";
    // Whoever runs the test may be root.
    let options = ["--user", "--map-user=1234", "--map-group=567"];
    for (option, ids) in [("", "0\n0\n"), ("--user", "1234\n567\n")] {
        let folder = tempfile::tempdir().unwrap();
        let script =
            format!("$NOBOUNCE exec --rw . {option} -- sh -ec \"$PROGRAM\"; stat -c %u kept");
        let output = unshare(&options, &script)
            .env("PROGRAM", program)
            .current_dir(&folder)
            .ended(0);
        let said = format!("{ids}1234\n");
        assert_eq!(stdout(&output), said, "{}", stderr(&output));
    }
}

#[test]
fn the_installed_program_needs_only_to_read_the_checkout() {
    let script = "
        mount --bind $CHECKOUT $CHECKOUT
        mount -o remount,bind,ro $CHECKOUT
        if touch $CHECKOUT/target 2> /dev/null; then exit 99; fi
        cd /
        exec $NOBOUNCE exec -- echo hello
    ";
    let output = unshare(&["--mount", "--map-root-user"], script)
        .env("CHECKOUT", root())
        // As no cargo runs it, and nobody has made what it boots.
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("NOBOUNCE_LAB")
        .ended(0);
    assert_eq!(stdout(&output), "hello\n", "{}", stderr(&output));
}
