// SPDX-License-Identifier: MIT OR Apache-2.0

//! The one way in which xtask runs other programs: the whole output goes to a
//! log, its lines to the step's progress, and a failure names the command, its
//! exit status, the first errors, the log, and the way out where one is known.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::program;
use crate::ui::Step;

/// How many error lines and last lines of a log a failure shows.
const SHOWN_LINES: usize = 8;

/// What to do when the disk is full.
pub fn disk_full() -> String {
    format!(
        "the disk is full: free some space (`{} clean --cache` empties nobounce's own cache), or \
         set XDG_CACHE_HOME to a larger disk",
        program::name()
    )
}

/// Variables that would change what a nested `make` or `cargo` does: those a
/// calling make leaves behind, and those that point Kbuild somewhere else.
const NOT_INHERITED: &[&str] = &[
    "KBUILD_OUTPUT",
    "KDIR",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MAKEOVERRIDES",
    "MFLAGS",
    "M",
    "MO",
    "O",
    "V",
];

/// A program to run, with a clean environment for `make`. It is killed when this process is, so that
/// nothing goes on behind the next run's back.
pub struct Cmd {
    command: Command,
}

impl Cmd {
    /// Prepares `program`, looked up on PATH.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        // SAFETY: Between fork and exec this makes one system call, and allocates nothing.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        Self { command }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes variables of the environment.
    pub fn env_remove(mut self, names: &[&str]) -> Self {
        for name in names {
            self.command.env_remove(name);
        }
        self
    }

    /// Sets the folder to run in.
    pub fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Runs to the end and returns what was printed on standard output.
    ///
    /// # Errors
    ///
    /// When the program isn't there or fails; its last words are in the error.
    pub fn output(mut self) -> Result<String> {
        let shown = self.shown();
        let output = self
            .command
            .stdin(Stdio::null())
            .output()
            .map_err(|e| self.cannot_start(e))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let lines: Vec<&str> = stderr.lines().collect();
            bail!(
                "`{shown}` failed ({}){}{}",
                output.status,
                indented(":", last(&lines)),
                way_out(&lines)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs to the end; the output goes to `log`, each line also to `on_line`.
    ///
    /// # Errors
    ///
    /// When the log can't be written, or the program isn't there or fails.
    pub fn logged(mut self, log: &Path, mut on_line: impl FnMut(&str)) -> Result<()> {
        let shown = self.shown();
        // Written line by line, so that it can be followed.
        let mut file =
            File::create(log).with_context(|| format!("can't write the log {}", log.display()))?;
        writeln!(file, "$ {shown}")?;

        // One pipe for both streams, so that the log has them in order.
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        self.command
            .stdin(Stdio::null())
            .stdout(write.try_clone()?)
            .stderr(write);
        let spawned = self.command.spawn();
        let mut child = spawned.map_err(|e| self.cannot_start(e))?;
        // The command keeps the write ends until it is gone: without them the
        // pipe closes when the program and its children have ended.
        drop(self.command);

        let mut lines = Vec::new();
        let mut reader = BufReader::new(File::from(read));
        let mut raw = Vec::new();
        while reader.read_until(b'\n', &mut raw)? > 0 {
            file.write_all(&raw)?;
            let line = String::from_utf8_lossy(&raw).trim_end().to_owned();
            on_line(&line);
            lines.push(line);
            raw.clear();
        }
        let status = child.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(failure(&shown, status, &lines, log))
    }

    /// As [`Cmd::logged`], showing each line as the step's detail.
    pub fn step(self, step: &Step, log: &Path) -> Result<()> {
        self.logged(log, |line| {
            if !line.is_empty() {
                step.detail(line.trim());
            }
        })
    }

    /// Runs to the end with the terminal; returns whether it succeeded.
    ///
    /// # Errors
    ///
    /// When the program isn't there.
    pub fn shown_to_user(mut self) -> Result<ExitStatus> {
        self.command.status().map_err(|e| self.cannot_start(e))
    }

    fn shown(&self) -> String {
        let mut words = vec![self.command.get_program()];
        words.extend(self.command.get_args());
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        words.join(" ")
    }

    fn cannot_start(&self, error: std::io::Error) -> anyhow::Error {
        let program = self.command.get_program().to_string_lossy().into_owned();
        if error.kind() == std::io::ErrorKind::NotFound {
            let way_out = match program.as_str() {
                "rustc" | "rustfmt" | "cargo" => {
                    "it belongs to Rust's toolchain (rustup has it)".to_owned()
                }
                _ => format!("`{} setup` installs what is missing", program::name()),
            };
            anyhow!("`{program}` isn't installed; {way_out}")
        } else {
            anyhow::Error::new(error).context(format!("can't start `{program}`"))
        }
    }
}

/// Whether `program` is an executable on PATH (or the file it names).
pub fn on_path(program: &str) -> bool {
    find_on_path(program).is_some()
}

/// Where it is.
pub fn find_on_path(program: &str) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| path.is_file();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(is_file);
    }
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|dir| dir.join(program));
    places.find(is_file)
}

/// The cargo that runs us.
pub fn cargo() -> Cmd {
    Cmd::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn failure(shown: &str, status: ExitStatus, lines: &[String], log: &Path) -> anyhow::Error {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let errors: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|l| is_error(l))
        .take(SHOWN_LINES)
        .collect();
    let first = indented("\n  first errors:", &errors);
    anyhow!(
        "`{shown}` failed ({status}){first}{}\n  log: {}{}",
        indented("\n  last lines:", last(&lines)),
        log.display(),
        way_out(&lines)
    )
}

fn is_error(line: &str) -> bool {
    let line = line.trim_start();
    ["error:", "error[", "E: ", "***", "ERROR:"]
        .iter()
        .any(|p| line.starts_with(p))
        || line.contains(": error:")
        || line.contains(": fatal error:")
        || line.contains(" *** ")
}

fn last<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    &lines[lines.len().saturating_sub(SHOWN_LINES)..]
}

fn indented(head: &str, lines: &[&str]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("{head}\n    {}", lines.join("\n    "))
}

/// What a user can do about a failure, by what the program said.
fn way_out(lines: &[&str]) -> String {
    const NO_SPACE: &[&str] = &[
        "No space left on device",
        "You don't have enough free space",
    ];
    const NO_NETWORK: &[&str] = &[
        "Temporary failure resolving",
        "Could not resolve",
        "Could not connect",
        "Connection refused",
        "Connection timed out",
        "Network is unreachable",
        "failed to download",
        "download of config.json failed",
        "spurious network error",
    ];
    const NO_KEY: &[&str] = &[
        "NO_PUBKEY",
        "is not signed",
        "no Release file",
        "Missing key",
    ];
    const NOT_ALLOWED: &[&str] = &["Permission denied", "are you root"];

    let said = |signs: &[&str]| lines.iter().any(|l| signs.iter().any(|s| l.contains(s)));
    let text = if said(NO_SPACE) {
        disk_full()
    } else if said(NO_NETWORK) {
        "the network, or the registry behind it, can't be reached: run it again when it is back; \
         what is in the cache already is kept"
            .to_owned()
    } else if said(NO_KEY) {
        "apt has no key for the suite: upgrade the package debian-archive-keyring".to_owned()
    } else if said(NOT_ALLOWED) {
        let program = program::name();
        format!("run it as a user who may do that, or see `{program} setup` for what to install")
    } else {
        return String::new();
    };
    format!("\n  way out: {text}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_failure_names_command_status_errors_log_and_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("x.log");
        let error = Cmd::new("sh")
            .args([
                "-c",
                "echo fine; echo 'a.c:1:2: error: No space left on device' >&2; exit 3",
            ])
            .logged(&log, |_| {})
            .unwrap_err()
            .to_string();
        for part in [
            "sh -c",
            "exit status: 3",
            "a.c:1:2",
            "x.log",
            "disk is full",
        ] {
            assert!(error.contains(part), "no `{part}` in: {error}");
        }
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.contains("fine\n") && log.contains("a.c:1:2"), "{log}");
    }

    #[test]
    fn both_streams_reach_the_callback_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut seen = Vec::new();
        Cmd::new("sh")
            .args(["-c", "echo 1; echo 2 >&2; echo 3"])
            .logged(&dir.path().join("x.log"), |line| seen.push(line.to_owned()))
            .unwrap();
        assert_eq!(seen, ["1", "2", "3"]);
    }

    #[test]
    fn a_missing_program_is_named_with_the_step_that_installs() {
        let error = Cmd::new("no-such-program-here").output().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no-such-program-here"), "{text}");
        assert!(text.contains(" setup`"), "{text}");
    }

    #[test]
    fn an_outer_make_does_not_reach_the_inner_one() {
        let output = Cmd::new("sh")
            .env("PROBE", "1")
            .args([
                "-c",
                "echo ${MAKEFLAGS-unset} ${KBUILD_OUTPUT-unset} $PROBE",
            ])
            .output()
            .unwrap();
        assert_eq!(output.trim(), "unset unset 1");
    }

    #[test]
    fn a_program_is_killed_with_the_one_that_runs_it() {
        // The kernel goes by the thread that started it.
        let start = || Cmd::new("sleep").arg("20").command.spawn();
        let mut child = std::thread::spawn(start).join().unwrap().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn ordinary_lines_are_no_errors() {
        for line in ["  CC      lib/errname.o", "warning: unused", "0 errors"] {
            assert!(!is_error(line), "{line}");
        }
        for line in [
            "error[E0308]: mismatched",
            "make: *** [x] Error 2",
            "x.c:3:1: error: y",
        ] {
            assert!(is_error(line), "{line}");
        }
    }
}
