// SPDX-License-Identifier: MIT OR Apache-2.0

//! Cases that run elsewhere.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::checkout::{nobounce, root};
use crate::{Ends, assert_says, stderr, stdout};

/// Makes an archive, and unpacks it into `dir`. Returns its folder.
fn unpacked(dir: &Path, options: &[&OsStr]) -> PathBuf {
    let file = dir.join("build.tar.gz");
    let made = Command::new(nobounce())
        .arg("archive")
        .args(options)
        .arg(&file)
        .ended(0);
    assert_eq!(stdout(&made), format!("{}\n", file.display()));
    Command::new("tar")
        .args(["--extract", "--gzip", "--file"])
        .arg(&file)
        .arg("--directory")
        .arg(dir)
        .ended(0);
    dir.join("nobounce")
}

/// Runs cases of an unpacked archive, which pass, as on a machine that has nothing else.
fn run(home: &Path, cases: &str) -> Output {
    Command::new(home.join("run"))
        .args(["-E", cases])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("TMPDIR", "/tmp")])
        .env("HOME", home)
        .ended(0)
}

/// One that any NIC passes, one that takes device memory, and those about rigb.
const CASES: &str = "test(=frames_longer_than_the_mtu_are_not_delivered)
    + test(=payload_of_a_vlan_reaches_the_dma_buf_with_the_tag_stripped_or_not)
    + binary(rigb)";

/// The cases that runs have skipped, with the reasons.
fn skipped(home: &Path) -> Vec<String> {
    let files = home.join("skipped").read_dir().unwrap();
    let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let texts: Vec<_> = texts.collect();
    texts
        .iter()
        .flat_map(|text| text.lines())
        .map(str::to_owned)
        .collect()
}

#[test]
fn an_archive_runs_where_there_is_nothing_but_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    // Another run may be testing the one of the tree.
    let igb = fs::read_to_string(root().join("harness/nics/igb.toml")).unwrap();
    let nic = dir.path().join("packed.toml");
    fs::write(&nic, igb.replace("name = \"igb\"", "name = \"packed\"")).unwrap();
    let home = unpacked(dir.path(), &["--nic".as_ref(), nic.as_ref()]);
    assert_says(&stderr(&run(&home, CASES)), &["2 tests run: 2 passed"]);
    let skipped = skipped(&home);
    assert!(
        matches!(&skipped[..], [one] if one.contains("\tpacked lacks ")),
        "{skipped:?}"
    );
    let guest = fs::read_to_string(home.join("guest.json")).unwrap();
    assert!(!guest.contains(root().to_str().unwrap()), "{guest}");
    let logs: Vec<_> = home.join("logs").read_dir().unwrap().collect();
    assert_eq!(logs.len(), 1, "{logs:?}");

    // Without a NIC's description it is an archive as of no NIC.
    fs::remove_file(home.join("nic.toml")).unwrap();
    fs::remove_dir_all(home.join("skipped")).unwrap();
    let output = run(
        &home,
        "test(=payload_of_a_vlan_reaches_the_dma_buf_with_the_tag_stripped_or_not)",
    );
    assert_says(&stderr(&output), &["1 test run: 1 passed"]);
    assert!(!home.join("skipped").exists());
}
