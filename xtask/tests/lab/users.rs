// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ordinary users, and a checkout that nobody can write to.

use std::process::{Command, Stdio};

use crate::checkout::{nobounce, root};
use crate::{Ends, assert_says, stderr, stdout};

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

/// A shell script in `/`, to which the checkout is read-only. As no cargo runs it, what the program builds
/// goes to the cache.
fn only_reading_the_checkout(script: &str) -> Command {
    let script = format!(
        "
        mount --bind $CHECKOUT $CHECKOUT
        mount -o remount,bind,ro $CHECKOUT
        if touch $CHECKOUT/target 2> /dev/null; then exit 99; fi
        cd /
        {script}
        "
    );
    let mut command = unshare(&["--mount", "--map-root-user"], &script);
    command
        .env("CHECKOUT", root())
        .env_remove("CARGO_MANIFEST_DIR")
        // Nobody has made what it boots.
        .env_remove("NOBOUNCE_LAB");
    command
}

#[test]
fn the_installed_program_needs_only_to_read_the_checkout() {
    let output = only_reading_the_checkout("exec $NOBOUNCE exec -- echo hello").ended(0);
    assert_eq!(stdout(&output), "hello\n", "{}", stderr(&output));
}

#[test]
fn cases_need_only_to_read_the_checkout() {
    // Building the tests takes minutes: those that this one was built with are mounted where they would go.
    let script = "
        target=$($NOBOUNCE guest)
        target=${target%/nobounce/*}/debug
        mkdir --parents $target
        mount --bind $CHECKOUT/target/debug $target
        mount -o remount,bind,rw $target
        exec $NOBOUNCE test -- -E 'test(=frames_longer_than_the_mtu_are_not_delivered)' 2>&1
    ";
    let said = stdout(&only_reading_the_checkout(script).ended(0));
    assert_says(&said, &["1 test run: 1 passed"]);
    assert!(!said.contains("Compiling"), "{said}");
}
