// SPDX-License-Identifier: MIT OR Apache-2.0

//! Cases that run elsewhere.

use std::process::Command;

use crate::{assert_status, stdout};

#[test]
fn an_archive_runs_where_there_is_nothing_but_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("build.tar.gz");
    let made = Command::new(env!("CARGO_BIN_EXE_nobounce"))
        .arg("archive")
        .arg(&file)
        .output()
        .unwrap();
    assert_status(&made, 0);
    assert_eq!(stdout(&made), format!("{}\n", file.display()));
    let unpacked = Command::new("tar")
        .args(["--extract", "--gzip", "--file"])
        .arg(&file)
        .arg("--directory")
        .arg(dir.path())
        .output()
        .unwrap();
    assert_status(&unpacked, 0);

    let home = dir.path().join("nobounce");
    let output = Command::new(home.join("run"))
        .args(["-E", "test(=frames_longer_than_the_mtu_are_not_delivered)"])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("TMPDIR", "/tmp")])
        .env("HOME", dir.path())
        .output()
        .unwrap();
    assert_status(&output, 0);
    let guest = std::fs::read_to_string(home.join("guest.json")).unwrap();
    assert!(!guest.contains(env!("CARGO_MANIFEST_DIR")), "{guest}");
    let logs: Vec<_> = home.join("logs").read_dir().unwrap().collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
}
