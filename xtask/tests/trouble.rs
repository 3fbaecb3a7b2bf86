// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the commands say when something is missing or wrong: the thing, the way out, and a status
//! that scripts can see. Each runs with a cache of its own, and with stand-ins for other programs.

mod checkout;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

/// A machine's trouble: an empty cache, and programs in front of the machine's.
struct Trouble {
    dir: TempDir,
}

impl Trouble {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cache/nobounce", "bin"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        // None that would be fetched first.
        Self { dir }.program("bindgen", "echo bindgen 0.72.1")
    }

    /// A program that does what this shell script says.
    fn program(self, name: &str, script: &str) -> Self {
        let path = self.dir.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// A kernel build that has these options, and was made by this rustc.
    fn kernel(&self, options: &[&str], rustc: &str) -> String {
        let kernel = self.dir.path().join("kernel");
        fs::create_dir_all(kernel.join("include/config")).unwrap();
        let mut config = format!("CONFIG_RUSTC_VERSION_TEXT=\"{rustc}\"\n");
        for option in options {
            config += &format!("CONFIG_{option}=y\n");
        }
        fs::write(kernel.join(".config"), config).unwrap();
        fs::write(kernel.join("include/config/kernel.release"), "7.3.4\n").unwrap();
        fs::write(kernel.join("Module.symvers"), "").unwrap();
        kernel.display().to_string()
    }

    fn command(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(checkout::root())
            .env("XDG_CACHE_HOME", self.dir.path().join("cache"))
            .env("LIBCLANG_PATH", self.dir.path())
            .env("PATH", format!("{}/bin:{path}", self.dir.path().display()))
            .stdin(Stdio::null());
        for name in ["KDIR", "KBUILD_OUTPUT", "QEMU", "MAKEFLAGS", "MAKELEVEL"] {
            command.env_remove(name);
        }
        command
    }

    fn xtask(&self, args: &[&str]) -> Command {
        self.command(checkout::nobounce(), args)
    }

    /// `make module` with a kernel.
    fn make(&self, kernel: &str) -> Command {
        self.command("make", &["module", &format!("KDIR={kernel}")])
    }

    /// Runs it with arguments for which it must fail and say all of this.
    #[track_caller]
    fn fails_saying(&self, args: &[&str], expected: &[&str]) {
        fails_saying(self.xtask(args), expected);
    }
}

/// Runs a command that must fail and say all of this.
#[track_caller]
fn fails_saying(mut command: Command, expected: &[&str]) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it did not fail: {said}");
    for part in expected {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

/// All that the module needs.
const OPTIONS: [&str; 6] = [
    "RUST",
    "MODULES",
    "PCI_MSI",
    "INET",
    "PAGE_POOL",
    "NET_DEVMEM",
];

#[test]
fn a_kernel_that_lacks_what_the_driver_uses_has_a_line_in_the_table() {
    let trouble = Trouble::new();
    let tree = trouble.dir.path().join("linux");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("Kbuild"), "").unwrap();
    fs::write(tree.join("Makefile"), "VERSION = 7\nPATCHLEVEL = 2\n").unwrap();
    let tree = tree.display().to_string();
    let output = trouble
        .xtask(&["test", "--kernel", &tree])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("kernel  release"), "{text}");
    assert!(
        lines[1].starts_with("linux   -        not tested: ") && lines[1].contains("is 7.2.0"),
        "{text}"
    );
    assert_eq!(
        lines[2].trim(),
        "SpinLockIrq in rust/kernel/sync/lock/spinlock.rs"
    );
    trouble.fails_saying(&["test", "--kernel", "/no/such"], &["/no/such", "7.3"]);
}

#[test]
fn wrong_arguments_are_named() {
    let trouble = Trouble::new();
    for (args, expected) in [
        (&["lunch"][..], "lunch"),
        (&["run", "--jsn"], "--json"),
        (&["run", "--json"], "FILE"),
        (&["clean", "cache"], "cache"),
    ] {
        trouble.fails_saying(args, &[expected, "--help"]);
    }
}

#[test]
fn the_help_has_every_step() {
    let output = Trouble::new().xtask(&["--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let steps = "setup source kernel module qemu agent initramfs guest run test check doc clean \
                 doctor exec shell enter ls archive new-driver fuzz";
    for step in steps.split_whitespace() {
        let line = format!("\n  {step} ");
        assert!(help.contains(&line), "{step} is not in: {help}");
    }
}

#[test]
fn the_doctor_says_what_must_be_mended_and_changes_nothing() {
    let trouble = Trouble::new().program("old-qemu", "echo QEMU emulator version 9.0.0");
    let mut doctor = trouble.xtask(&["doctor"]);
    let qemu = trouble.dir.path().join("bin/old-qemu");
    let output = doctor.env("QEMU", qemu).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{said}");
    let line = said.lines().find(|line| line.starts_with("LACKS"));
    let line = line.unwrap_or_else(|| panic!("it lacks nothing: {said}"));
    assert!(line.contains("QEMU") && line.contains("10.1"), "{said}");
    assert!(said.contains("has    bindgen"), "{said}");
    let cache = trouble.dir.path().join("cache/nobounce");
    assert_eq!(fs::read_dir(cache).unwrap().count(), 0);
}

#[test]
fn where_there_is_no_apt_the_managers_line_and_the_container_are_named() {
    for (manager, install, qemu) in [
        ("dnf", "sudo dnf install", "qemu-system-x86-core"),
        ("pacman", "sudo pacman -S --needed", "qemu-system-x86"),
        ("zypper", "sudo zypper install", "qemu-x86"),
    ] {
        let trouble = Trouble::new()
            .program(manager, "echo it was run >&2; exit 1")
            .program("rustc", "echo rustc 1.90.0");
        let alone = |args| {
            let mut command = trouble.xtask(args);
            command.env("PATH", trouble.dir.path().join("bin"));
            command
        };
        let line = &format!("{install} gcc ");
        let wanted = [line, " flex bison ", "podman build -t nobounce ."];
        fails_saying(alone(&["setup"]), &wanted);

        let output = alone(&["doctor"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let lines = [
            line,
            &format!("(`{install} {qemu}`)"),
            &format!("(`{install} rust-src` for the distribution's Rust)"),
        ];
        for line in lines {
            assert!(said.contains(line), "`{line}` is not in: {said}");
        }
        for what in ["core library", "QEMU", "kernel"] {
            let lacks = format!("LACKS  {what} ");
            assert!(said.contains(&lacks), "{what}: {said}");
        }
        fails_saying(alone(&["doctor"]), &["podman build -t nobounce ."]);

        fails_saying(
            alone(&["source"]),
            &[
                "isn't Debian",
                "KDIR=",
                &format!("{install} {qemu} rust-src"),
                "podman build -t nobounce .",
            ],
        );
    }
    // Nobody has to read of containers on Debian.
    let output = Trouble::new().xtask(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("podman"), "{said}");
}

#[test]
fn a_kernel_that_is_none_or_lacks_options_is_named_with_them() {
    let trouble = Trouble::new();
    let named = ["KDIR=/no/such/tree"];
    trouble.fails_saying(&["module", "--kdir", "/no/such/tree"], &named);
    for option in ["RUST", "NET_DEVMEM"] {
        let options: Vec<_> = OPTIONS.into_iter().filter(|name| *name != option).collect();
        let kernel = trouble.kernel(&options, "rustc 1.2.3");
        let missing = format!("CONFIG_{option}=y");
        let wanted = [kernel.as_str(), &missing];
        trouble.fails_saying(&["module", "--kbuild-output", &kernel], &wanted);
        fails_saying(trouble.make(&kernel), &wanted);
    }
    let empty = trouble.dir.path().display().to_string();
    fails_saying(trouble.make(&empty), &["no .config"]);
}

#[test]
fn a_kernel_that_another_rustc_built_is_named_with_both() {
    let trouble = Trouble::new();
    let kernel = trouble.kernel(&OPTIONS, "rustc 1.2.3 (abc)");
    let here = Command::new("rustc").arg("--version").output().unwrap();
    let here = String::from_utf8(here.stdout).unwrap();
    let wanted = [kernel.as_str(), "rustc 1.2.3 (abc)", here.trim()];
    trouble.fails_saying(&["module", "--kbuild-output", &kernel], &wanted);
    fails_saying(trouble.make(&kernel), &wanted);
}

#[test]
fn what_a_plain_module_build_lacks_is_named() {
    let trouble = Trouble::new();
    let kernel = trouble.kernel(&OPTIONS, "rustc 1.2.3 (abc)");
    for (missing, expected) in [
        ("BINDGEN=/no/such", "bindgen is missing"),
        ("RUSTC=/no/such", "rustc is missing"),
    ] {
        let mut make = trouble.make(&kernel);
        make.arg(missing);
        fails_saying(make, &[expected]);
    }
    fs::remove_file(Path::new(&kernel).join("Module.symvers")).unwrap();
    fails_saying(trouble.make(&kernel), &[&kernel, "not built"]);
}

#[test]
fn a_qemu_that_does_not_suit_is_named() {
    let trouble = Trouble::new().program("old", "echo QEMU emulator version 8.2.1");
    for (given, expected) in [
        ("old", "10.1.0 or newer"),
        ("no-such-qemu", "isn't installed"),
    ] {
        let mut command = trouble.xtask(&["qemu"]);
        command.env("QEMU", given);
        fails_saying(command, &[&format!("QEMU={given}"), expected, "unset it"]);
    }
}

#[test]
fn the_systems_qemu_is_taken_where_it_suits_and_only_there() {
    let qemu = |version: &str| {
        apt("E: Temporary failure resolving 'mirror.invalid'").program(
            "qemu-system-x86_64",
            &format!(
                "case $1 in --version) echo QEMU emulator version {version};;\n\
                 *) echo 'name \"igb\", bus PCI';; esac"
            ),
        )
    };
    let output = qemu("10.1.0").xtask(&["qemu"]).output().unwrap();
    assert_eq!(output.stdout, b"qemu-system-x86_64\n", "{output:?}");
    let said = ["the system's QEMU isn't used", "7.2.22", "logs/apt.log"];
    qemu("7.2.22").fails_saying(&["qemu"], &said);
}

/// An apt that knows a mirror, and fails to get anything from it.
fn apt(words: &str) -> Trouble {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .unwrap_or("stable");
    Trouble::new().program(
        "apt-get",
        &format!(
            "case \"$*\" in *indextargets*) echo {codename} http://mirror.invalid/debian;;\n\
             *) echo \"{words}\" >&2; exit 100;; esac"
        ),
    )
}

#[test]
fn a_network_or_disk_that_fails_is_named_with_the_log_and_the_way_out() {
    for (words, way_out) in [
        (
            "E: Temporary failure resolving 'mirror.invalid'",
            "run it again when it is back",
        ),
        (
            "E: You don't have enough free space in /x/",
            "XDG_CACHE_HOME to a larger disk",
        ),
    ] {
        let trouble = apt(words);
        let said = [words, "logs/apt.log", "way out:", way_out];
        trouble.fails_saying(&["source"], &said);
        let source = trouble.dir.path().join("cache/nobounce/source");
        assert!(!source.exists(), "a source that is not there");
    }
}

#[test]
fn what_takes_over_a_second_says_what_it_does_where_there_is_no_terminal() {
    let trouble = apt("E: no; $(sleep 2)");
    let output = trouble.xtask(&["source"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let spoken = said
        .lines()
        .filter(|line| line.starts_with("   ") && line.contains(" s, reading the package lists"));
    assert_eq!(spoken.count(), 1, "{said}");
}

#[test]
fn a_second_run_says_whom_it_waits_for_and_goes_on_after_it() {
    let trouble = Trouble::new();
    let path = trouble.dir.path().join("cache/nobounce/lock");
    fs::write(&path, "process 17 (`cargo xtask run` in /elsewhere)").unwrap();
    let held = File::open(&path).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();

    let mut second = trouble
        .xtask(&["module", "--kdir", "/no/such/tree"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(second.stderr.take().unwrap()).lines();
    // It may have to wait for another test, which makes something in the same target folder, before.
    let mut lines = said.by_ref().map_while(Result::ok);
    let waiting = lines.find(|line| line.contains("waiting for the cache"));
    let waiting = waiting.expect("a line about it");
    assert!(waiting.contains("process 17"), "{waiting}");
    // Would have ended by now, and said so, if it did not wait.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(second.try_wait().unwrap().is_none(), "it did not wait");
    drop(held);
    let then = said.next().unwrap().unwrap();
    assert!(then.contains("/no/such/tree"), "{then}");
    assert!(!second.wait().unwrap().success());
}
