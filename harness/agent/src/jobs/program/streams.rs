// SPDX-License-Identifier: MIT OR Apache-2.0

//! A program's standard streams, both ends.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::fd::OwnedFd,
    process::Stdio,
    sync::mpsc,
    thread,
};

use anyhow::{Context, Result, bail};
use protocol::{
    Event, JobId,
    bytes::Bytes,
    program::{Stream, Streams, WindowSize},
};
use rustix::{
    pipe::{PipeFlags, pipe_with},
    pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::outbox::send_event;

/// How much is read at once, in bytes.
const CHUNK: usize = 32 << 10;

/// The ends of a program's streams.
pub(super) struct Ends {
    /// The program's: input, output, errors.
    pub(super) child: [Stdio; 3],
    pub(super) input: Input,
    pub(super) outputs: Vec<(Stream, File)>,
}

impl Ends {
    /// Makes pipes, or a terminal of the file system at `root`.
    pub(super) fn open(streams: Streams, root: &str) -> Result<Self> {
        match streams {
            Streams::Merged => {
                let (read, write) = pipe()?;
                Ok(Self {
                    child: [Stdio::null(), write.try_clone()?.into(), write.into()],
                    input: Input::None,
                    outputs: vec![(Stream::Output, read.into())],
                })
            }
            Streams::Pipes => {
                let (input, ours) = pipe()?;
                let (out, output) = pipe()?;
                let (err, error) = pipe()?;
                Ok(Self {
                    child: [input.into(), output.into(), error.into()],
                    input: Input::Pipe(ours.into()),
                    outputs: vec![(Stream::Output, out.into()), (Stream::Error, err.into())],
                })
            }
            Streams::Terminal { size, errors_apart } => {
                // Of the file system's own instance, where the program finds its name.
                let path = format!("{root}/dev/pts/ptmx");
                let mut options = OpenOptions::new();
                let ours = options
                    .read(true)
                    .write(true)
                    .open(&path)
                    .with_context(|| format!("opening {path}"))?;
                unlockpt(&ours).context("unlocking a terminal")?;
                let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
                let theirs = ioctl_tiocgptpeer(&ours, flags).context("opening a terminal")?;
                let mut input = Input::Terminal(ours.try_clone()?);
                input.resize(size)?;
                let mut outputs = vec![(Stream::Output, ours)];
                let errors = if errors_apart {
                    let (err, error) = pipe()?;
                    outputs.push((Stream::Error, err.into()));
                    error
                } else {
                    theirs.try_clone()?
                };
                Ok(Self {
                    child: [theirs.try_clone()?.into(), theirs.into(), errors.into()],
                    input,
                    outputs,
                })
            }
        }
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC).context("making a pipe")
}

/// Our end of a program's standard input.
pub(super) enum Input {
    None,
    Pipe(File),
    Terminal(File),
}

impl Input {
    /// Writes all of it, and waits while the program doesn't read.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::None => bail!("the program has no input"),
            Self::Pipe(file) | Self::Terminal(file) => {
                file.write_all(bytes).context("writing to the program")
            }
        }
    }

    /// Ends it. A terminal's ends with its end-of-file character.
    pub(super) fn close(&mut self) -> Result<()> {
        if let Self::Pipe(_) = self {
            *self = Self::None;
        }
        Ok(())
    }

    pub(super) fn resize(&mut self, size: WindowSize) -> Result<()> {
        let Self::Terminal(terminal) = self else {
            bail!("the program has no terminal");
        };
        let size = Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(terminal, size).context("setting the size of a terminal")
    }
}

/// Sends what comes as events until nothing more does; the channel closes then.
pub(super) fn pass_on(id: JobId, outputs: Vec<(Stream, File)>) -> Result<mpsc::Receiver<()>> {
    let (sender, done) = mpsc::channel();
    for (stream, mut file) in outputs {
        let sender = sender.clone();
        thread::Builder::new()
            .name(format!("{stream:?} {}", id.0))
            .spawn(move || {
                let mut buffer = vec![0; CHUNK];
                // A terminal that nobody has open any more fails with EIO.
                while let Ok(read @ 1..) = file.read(&mut buffer) {
                    let bytes = Bytes(buffer[..read].to_owned());
                    send_event(id, Event::Output { stream, bytes });
                }
                drop(sender);
            })
            .context("starting a thread")?;
    }
    Ok(done)
}
