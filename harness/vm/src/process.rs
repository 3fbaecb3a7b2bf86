// SPDX-License-Identifier: MIT OR Apache-2.0

//! QEMU's process: started with inherited file descriptors, watched, never left behind.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Command, ExitStatus},
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{
        Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
    },
};

use crate::lock::lock;

/// A child that dies with its parent, and with this value.
#[derive(Debug)]
pub(crate) struct Process {
    pidfd: OwnedFd,
    exit: Arc<Exit>,
}

#[derive(Debug, Default)]
struct Exit {
    status: Mutex<Option<ExitStatus>>,
    known: Condvar,
}

impl Process {
    /// Starts `command` with `inherited` file descriptors open under their numbers here. Its
    /// output goes to `output`.
    pub(crate) fn spawn(
        mut command: Command,
        inherited: Vec<OwnedFd>,
        output: File,
    ) -> io::Result<Self> {
        // A terminal's signals are its user's program's: Ctrl-C must not end the machine.
        command.process_group(0);
        command.stdout(output.try_clone()?);
        command.stderr(output);
        let exit = Arc::new(Exit::default());
        let (started, start) = mpsc::channel();
        let shared = Arc::clone(&exit);
        // The death signal comes when the *thread* that forked ends, so the child gets a thread
        // that lives exactly as long as it does.
        thread::Builder::new()
            .name("qemu".to_owned())
            .spawn(move || supervise(command, inherited, &started, &shared))?;
        let pidfd = start
            .recv()
            .map_err(|_| io::Error::other("the supervisor ended"))??;
        Ok(Self { pidfd, exit })
    }

    /// Waits for its end. `None` when it still runs after `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<ExitStatus> {
        let status = lock(&self.exit.status);
        let waited = self
            .exit
            .known
            .wait_timeout_while(status, timeout, |status| status.is_none());
        let (status, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *status
    }

    /// Keeps it from running for so long.
    pub(crate) fn stall(&self, time: Duration) {
        // Both fail when it has ended.
        let _ = pidfd_send_signal(&self.pidfd, Signal::STOP);
        thread::sleep(time);
        let _ = pidfd_send_signal(&self.pidfd, Signal::CONT);
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(&self) {
        if self.wait(Duration::ZERO).is_none() {
            // Fails when it ended in between.
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            self.wait(Duration::from_secs(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs the child from fork to end.
fn supervise(
    mut command: Command,
    inherited: Vec<OwnedFd>,
    started: &mpsc::Sender<io::Result<OwnedFd>>,
    exit: &Exit,
) {
    let numbers: Vec<_> = inherited.iter().map(AsRawFd::as_raw_fd).collect();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        for number in &numbers {
            // SAFETY: `inherited` outlives the spawn below, so the descriptor is open here, in the
            // child's copy of the table.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(*number) };
            fcntl_setfd(fd, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: Between fork and exec the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    let spawned = command.spawn().and_then(|mut child| {
        let pid = Pid::from_child(&child);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok((child, pidfd)),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    });
    drop(inherited);
    let mut child = match spawned {
        Ok((child, pidfd)) => {
            // The receiver waits for exactly this.
            let _ = started.send(Ok(pidfd));
            child
        }
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    // Cannot fail for a child of this process that is not waited for elsewhere.
    let status = child.wait().unwrap_or_default();
    *lock(&exit.status) = Some(status);
    exit.known.notify_all();
}

#[cfg(test)]
mod tests {
    use std::{io::Read, path::Path};

    use super::*;

    fn null() -> File {
        File::options().write(true).open("/dev/null").unwrap()
    }

    #[test]
    fn the_status_of_a_child_is_known() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 7"]);
        let process = Process::spawn(command, Vec::new(), null()).unwrap();
        let status = process.wait(Duration::from_secs(60)).unwrap();
        assert_eq!(status.code(), Some(7));
    }

    #[test]
    fn a_dropped_child_is_dead() {
        let mut command = Command::new("/bin/sleep");
        command.arg("1000");
        let process = Process::spawn(command, Vec::new(), null()).unwrap();
        let exit = Arc::clone(&process.exit);
        assert!(process.wait(Duration::ZERO).is_none());
        drop(process);
        assert!(lock(&exit.status).is_some());
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let mut command = Command::new("/bin/sleep");
        command.arg("1000");
        let spawn = move || Process::spawn(command, Vec::new(), null()).unwrap();
        let process = thread::spawn(spawn).join().unwrap();
        assert!(process.wait(Duration::from_millis(200)).is_none());
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let command = Command::new("/nonexistent/qemu");
        let error = Process::spawn(command, Vec::new(), null()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_descriptor_is_inherited_under_its_number() {
        let (mut reader, writer) = io::pipe().unwrap();
        let writer = OwnedFd::from(writer);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("echo here >&{}", writer.as_raw_fd())]);
        assert!(Path::new("/bin/sh").exists());
        let _process = Process::spawn(command, vec![writer], null()).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "here\n");
    }
}
