// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver that `new-driver` writes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::{assert_status, checkout, exec, gdb, stderr, stdout};

/// Runs the program in another checkout, as cargo would.
fn nobounce(root: &Path, arguments: &[&str]) -> Output {
    Command::new(checkout::nobounce())
        .args(arguments)
        .env("CARGO_MANIFEST_DIR", root.join("xtask"))
        .output()
        .unwrap()
}

#[test]
fn a_new_driver_builds_loads_goes_up_and_down_and_passes_its_first_case() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let here = checkout::root();
    fs::create_dir(root.join("harness")).unwrap();
    for part in ["Kbuild", "drivers", "qemu", "harness/nics"] {
        let copied = Command::new("cp")
            .arg("-r")
            .args([here.join(part), root.join(part)])
            .output()
            .unwrap();
        assert_status(&copied, 0);
    }
    assert_status(&nobounce(root, &["new-driver", "mynic"]), 0);
    let again = nobounce(root, &["new-driver", "mynic"]);
    assert_status(&again, 1);

    assert_status(&nobounce(root, &["module"]), 0);
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
    let output = exec(&["--bare"], &["sh", "-c", &script]).output().unwrap();
    assert_status(&output, 0);
    let text = stdout(&output);
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
    let nic = root.join("harness/nics/mynic.toml");
    let described = fs::read_to_string(&nic).unwrap();
    fs::write(&nic, format!("{described}modules = [{module:?}]\n")).unwrap();
    let output = Command::new(checkout::nobounce())
        .args(["test", "--nic"])
        .arg(&nic)
        .output()
        .unwrap();
    assert_status(&output, 0);
    let text = stdout(&output) + &stderr(&output);
    assert!(text.contains("mynic lacks Traffic"), "{text}");
    assert!(text.contains("mynic: ran 1 case, skipped "), "{text}");
}
