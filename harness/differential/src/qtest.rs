// SPDX-License-Identifier: MIT OR Apache-2.0

//! A client of QEMU's qtest protocol: a line is a command, a line is its answer.

use std::{
    fmt::Write as _,
    io::{self, BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{Error, Result};

/// It only ends what hangs.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often to look whether QEMU has come to the socket.
const LOOK: Duration = Duration::from_millis(10);

/// A QEMU without a guest, whose clock stands still. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Qtest {
    child: Child,
    commands: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Qtest {
    /// Starts a QEMU, which connects to a socket at `path`.
    pub(crate) fn start(mut command: Command, path: &Path) -> Result<Self> {
        let listener = UnixListener::bind(path).map_err(Error::Start)?;
        listener.set_nonblocking(true).map_err(Error::Start)?;
        command
            .args(["-accel", "qtest", "-qtest-log", "none", "-qtest"])
            .arg(format!("unix:{}", path.display()))
            .stdin(Stdio::null());
        let mut child = command.spawn().map_err(Error::Start)?;
        let stream = match accept(&listener, &mut child) {
            Ok(stream) => stream,
            Err(error) => {
                end(&mut child);
                return Err(error);
            }
        };
        let answers = stream.try_clone().map_err(Error::Start)?;
        Ok(Self {
            child,
            commands: stream,
            answers: BufReader::new(answers),
        })
    }

    /// Has a command done. Returns what follows the `OK` of its answer.
    fn ask(&mut self, command: &str) -> Result<String> {
        let short = || command.chars().take(60).collect::<String>();
        let mut answer = String::new();
        let asked =
            writeln!(self.commands, "{command}").and_then(|()| self.answers.read_line(&mut answer));
        match asked {
            Ok(0) => Err(self.ended(&short())),
            Ok(_) => match answer.trim_end().strip_prefix("OK") {
                Some(value) => Ok(value.trim_start().to_owned()),
                None => Err(Error::Refused {
                    command: short(),
                    answer,
                }),
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Error::Silent {
                command: short(),
                error,
            }),
            Err(_) => Err(self.ended(&short())),
        }
    }

    /// Why the socket is closed.
    fn ended(&mut self, command: &str) -> Error {
        match self.child.wait() {
            Ok(status) => Error::Ended(status),
            Err(error) => Error::Silent {
                command: command.to_owned(),
                error,
            },
        }
    }

    fn number(&mut self, command: &str) -> Result<u32> {
        let answer = self.ask(command)?;
        let digits = answer.trim_start_matches("0x");
        u64::from_str_radix(digits, 16)
            .ok()
            .and_then(|value| u32::try_from(value).ok())
            .ok_or_else(|| Error::Refused {
                command: command.to_owned(),
                answer: answer.clone(),
            })
    }

    /// Reads a port of 32 bits.
    pub(crate) fn read_port(&mut self, port: u16) -> Result<u32> {
        self.number(&format!("inl {port:#x}"))
    }

    /// Writes a port of 32 bits.
    pub(crate) fn write_port(&mut self, port: u16, value: u32) -> Result<()> {
        self.ask(&format!("outl {port:#x} {value:#x}")).map(drop)
    }

    /// Reads 32 bits of a device.
    pub(crate) fn read(&mut self, address: u64) -> Result<u32> {
        self.number(&format!("readl {address:#x}"))
    }

    /// Writes 32 bits of a device.
    pub(crate) fn write(&mut self, address: u64, value: u32) -> Result<()> {
        self.ask(&format!("writel {address:#x} {value:#x}"))
            .map(drop)
    }

    /// Reads memory.
    pub(crate) fn read_memory(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>> {
        let command = format!("b64read {address:#x} {bytes:#x}");
        let answer = self.ask(&command)?;
        STANDARD
            .decode(&answer)
            .map_err(|_| Error::Refused { command, answer })
    }

    /// Writes memory.
    pub(crate) fn write_memory(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let mut command = format!("b64write {address:#x} {:#x} ", bytes.len());
        // Writing to a string does not fail.
        let _ = write!(command, "{}", STANDARD.encode(bytes));
        self.ask(&command).map(drop)
    }

    /// Fills memory with a byte.
    pub(crate) fn fill(&mut self, address: u64, bytes: usize, value: u8) -> Result<()> {
        self.ask(&format!("memset {address:#x} {bytes:#x} {value:#x}"))
            .map(drop)
    }

    /// Lets the clock of the machine go on, and does what is due.
    pub(crate) fn step(&mut self, nanoseconds: u64) -> Result<()> {
        self.ask(&format!("clock_step {nanoseconds}")).map(drop)
    }

    /// Goes through QEMU's main loop so often that it has looked at all its sockets.
    pub(crate) fn turn(&mut self) -> Result<()> {
        // A command may be answered in the round in which a socket becomes readable, before that is
        // looked at; in the next round it has been. The port is one that nothing is at.
        (0..3).try_for_each(|_| self.read_port(0x510).map(drop))
    }
}

impl Drop for Qtest {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // Both fail when it has ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits until QEMU comes to the socket.
fn accept(listener: &UnixListener, child: &mut Child) -> Result<UnixStream> {
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(Error::Start)?;
                stream
                    .set_read_timeout(Some(TIMEOUT))
                    .map_err(Error::Start)?;
                return Ok(stream);
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(Error::Start(error));
            }
            Err(error) if start.elapsed() > TIMEOUT => return Err(Error::Start(error)),
            Err(_) => {}
        }
        if let Some(status) = child.try_wait().map_err(Error::Start)? {
            return Err(Error::Ended(status));
        }
        thread::sleep(LOOK);
    }
}
