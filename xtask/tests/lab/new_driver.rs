// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver that `new-driver` writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Ends, assert_says, checkout, gdb, shell, stderr, stdout};

/// Runs the program in another checkout, as cargo would; it ends with this status.
fn nobounce(root: &Path, arguments: &[&str], status: i32) {
    Command::new(checkout::nobounce())
        .args(arguments)
        .env("CARGO_MANIFEST_DIR", root.join("xtask"))
        .ended(status);
}

#[test]
fn a_new_driver_builds_loads_goes_up_and_down_and_passes_its_first_case() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let here = checkout::root();
    for part in ["Kbuild", "drivers", "qemu"] {
        Command::new("cp")
            .arg("-r")
            .args([here.join(part), root.join(part)])
            .ended(0);
    }
    nobounce(root, &["new-driver", "mynic"], 0);
    nobounce(root, &["new-driver", "mynic"], 1);

    nobounce(root, &["module"], 0);
    let module = root.join("target/nobounce/module/mynic.ko");
    assert!(fs::exists(&module).unwrap());
    let script = format!(
        "
        insmod {} && cd /sys/class/net && ls -d eth* && cat eth0/device/device &&
        for flag in 0x1003 0x1002 0x1003; do echo $flag > eth0/flags; cat eth0/flags; done &&
        rmmod mynic && ls
        ",
        module.display()
    );
    let text = stdout(&shell(&["--bare"], &script).ended(0));
    assert!(
        text.starts_with("eth0\neth1\n") && text.contains("0x10c9\n0x1003\n0x1002\n0x1003\n"),
        "{text}"
    );
    assert!(text.ends_with("\nlo\n"), "{text}");

    // gdb knows it, too.
    let dir = module.parent().unwrap().to_str().unwrap();
    let (mut child, _stderr, script) = gdb::start(
        &["--bare", "--symbols", dir],
        &["insmod", module.to_str().unwrap()],
    );
    let commands = [
        "set breakpoint pending on",
        "tbreak mynic_main::probe",
        "continue",
        "backtrace",
    ];
    let output = gdb::gdb(&script, &commands).output().unwrap();
    let text = stdout(&output);
    let stopped = text.lines().find(|line| line.starts_with("#0 "));
    assert!(
        stopped.is_some_and(|frame| frame.contains("drivers/mynic/mynic_main.rs:")),
        "{text}{}",
        stderr(&output)
    );
    assert!(child.wait().unwrap().success());

    // The cases are this checkout's, and build in it; the module is not.
    let nic = root.join("drivers/mynic/mynic.toml");
    let described = fs::read_to_string(&nic).unwrap();
    fs::write(&nic, format!("{described}modules = [{module:?}]\n")).unwrap();
    let output = Command::new(checkout::nobounce())
        .args(["test", "--nic"])
        .arg(&nic)
        .ended(0);
    let text = stdout(&output) + &stderr(&output);
    assert_says(&text, &["mynic lacks Traffic"]);
    assert_says(&text, &["mynic: ran 1 case, skipped "]);
}
