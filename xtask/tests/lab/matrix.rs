// SPDX-License-Identifier: MIT OR Apache-2.0

//! Other kernels: the cases on several, and programs on one of the user's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::checkout::{nobounce, root};
use crate::{Ends, assert_says, exec, stderr, stdout};

/// One that wants VLANs of the kernel, and one that doesn't.
const CASES: &str = "test(=payload_of_a_vlan_reaches_the_dma_buf_with_the_tag_stripped_or_not)
    + test(=frames_longer_than_the_mtu_are_not_delivered)";

/// A built kernel that seems to lack an option, by its configuration: that is what commands look at, and the kernel itself
/// stays as it is.
fn built_without(option: &str, tree: &Path) -> PathBuf {
    let built = Command::new(nobounce()).arg("kernel").ended(0);
    Command::new("cp")
        .args(["--recursive", "--symbolic-link", stdout(&built).trim()])
        .arg(tree)
        .ended(0);
    let config = tree.join(".config");
    let options = fs::read_to_string(&config).unwrap();
    fs::remove_file(&config).unwrap();
    fs::write(
        &config,
        options.replace(&format!("CONFIG_{option}=y\n"), ""),
    )
    .unwrap();
    tree.to_owned()
}

/// A source tree in `dir`, like that of the kernel that cases run on: its `make` copies what was built from that one.
fn source_tree(dir: &Path) -> PathBuf {
    let built = stdout(&Command::new(nobounce()).arg("kernel").ended(0));
    let built = Path::new(built.trim());
    let tree = dir.join("linux");
    fs::create_dir(&tree).unwrap();
    for entry in built.join("source").read_dir().unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), tree.join(entry.file_name())).unwrap();
    }
    let makefile = tree.join("Makefile");
    fs::remove_file(&makefile).unwrap();
    let recipe = format!(
        "VERSION = 7
PATCHLEVEL = 3
allnoconfig:
\tcp {built}/.config $(O)
bzImage:
\tcp --recursive --symbolic-link --no-clobber {built}/* $(O)
modules scripts_gdb: bzImage
",
        built = built.display()
    );
    fs::write(&makefile, recipe).unwrap();
    tree
}

/// A program in a guest of a kernel that a user built, which ends with this status.
fn run_on(kernel: &Path, status: i32) -> Output {
    let mut command = exec(&["--bare"], &["uname", "-r"]);
    // It builds in a folder of its own: cases run with what is in that of cargo.
    for variable in ["NOBOUNCE_LAB", "CARGO_MANIFEST_DIR"] {
        command.env_remove(variable);
    }
    command.env("KBUILD_OUTPUT", kernel).ended(status)
}

#[test]
fn a_program_runs_on_a_kernel_that_the_user_built_if_that_has_what_programs_need() {
    let dir = tempfile::tempdir().unwrap();
    let suits = built_without("VLAN_8021Q", &dir.path().join("suits"));
    let output = run_on(&suits, 0);
    assert!(stdout(&output).starts_with("7."), "{}", stdout(&output));
    let lacks = built_without("OVERLAY_FS", &dir.path().join("lacks"));
    let named = ["lacks 1 option", "CONFIG_OVERLAY_FS=y", "memory"];
    assert_says(&stderr(&run_on(&lacks, 125)), &named);
}

#[test]
fn a_program_is_not_run_on_a_kernel_of_ours_without_what_programs_need() {
    for option in ["--debug", "--lean", "--clang"] {
        let output = exec(&[option], &["true"])
            .env_remove("NOBOUNCE_LAB")
            .ended(125);
        assert_says(&stderr(&output), &[option]);
    }
}

#[test]
fn cases_run_on_a_version_and_on_a_built_tree_where_what_a_kernel_lacks_is_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let other = built_without("VLAN_8021Q", &dir.path().join("without-vlans"));
    let output = Command::new(nobounce())
        .args(["test", "--kernel", "7.3", "--kernel"])
        .arg(&other)
        .args(["--", "-E", CASES])
        .ended(0);
    let text = stdout(&output);
    let row = |kernel: &str| -> Vec<&str> {
        let line = text.lines().find(|line| line.starts_with(kernel));
        let line = line.unwrap_or_else(|| panic!("no row of {kernel}: {text}{}", stderr(&output)));
        line.split_whitespace().skip(2).collect()
    };
    assert_eq!(row("7.3"), ["2", "0", "0"], "{text}");
    assert_eq!(row("without-vlans"), ["1", "0", "1"], "{text}");
    let junit = root().join("target/nextest/kernel/without-vlans.xml");
    let junit = fs::read_to_string(junit).unwrap();
    let vlans = "name=\"payload_of_a_vlan_reaches_the_dma_buf_with_the_tag_stripped_or_not\"";
    let (_, case) = junit.split_once(vlans).expect("the case of VLANs");
    let (case, _) = case.split_once("</testcase>").unwrap();
    assert_says(case, &["<skipped message="]);
}

#[test]
fn a_nic_is_tested_on_a_kernel_of_several() {
    let output = Command::new(nobounce())
        .args(["test", "--nic", "harness/nics/igb.toml"])
        .args(["--kernel", "7.3", "--", "-E", CASES])
        .current_dir(root())
        .ended(0);
    let text = stdout(&output);
    let counts: Vec<_> = text.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(counts[2..], ["1", "0", "1"], "{text}");
    let junit = root().join("target/nextest/nic/igb-7.3.xml");
    let junit = fs::read_to_string(junit).unwrap();
    assert_says(&junit, &["<skipped message=\"igb lacks "]);
}

#[test]
fn a_source_tree_is_built_and_each_part_of_the_cases_runs_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let tree = source_tree(dir.path());
    let kernel = Command::new(nobounce())
        .args(["kernel", "--kdir"])
        .arg(&tree)
        .ended(0);
    let folder = PathBuf::from(stdout(&kernel).trim());
    let ran = ["hash:1/2", "hash:2/2"].map(|part| {
        let output = Command::new(nobounce())
            .args(["test", "--partition", part, "--kernel"])
            .arg(&tree)
            .args(["--", "-E", CASES])
            .ended(0);
        let text = stdout(&output);
        let row = text.lines().find(|line| line.starts_with("linux"));
        let row = row.unwrap_or_else(|| panic!("no row of linux: {text}{}", stderr(&output)));
        row.split_whitespace()
            .nth(2)
            .unwrap()
            .parse::<u32>()
            .unwrap()
    });
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(ran.iter().sum::<u32>(), 2, "{ran:?}");
}
