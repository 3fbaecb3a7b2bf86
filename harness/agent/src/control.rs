// SPDX-License-Identifier: MIT OR Apache-2.0

//! The channel to the host: reads calls, and answers each from its own thread.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    os::fd::AsFd,
    panic,
    sync::Arc,
    thread,
};

use anyhow::{Result, bail};
use protocol::{
    Call, Failure, Message, Request,
    frame::{self, FrameError},
};

use crate::{children, dispatch, failure, init, jobs::Jobs, outbox, port};

/// A panic anywhere reaches the host and the console, then the guest powers off.
pub(crate) fn install_panic_hook() {
    panic::set_hook(Box::new(|info| {
        outbox::report_panic(&info.to_string());
        init::power_off();
    }));
}

/// Opens the channel and serves it until the host asks to power off or goes away.
pub(crate) fn serve() -> Result<()> {
    let port = port::open()?;
    let reader = Inbox(port.try_clone()?);
    outbox::open(port)?;
    outbox::send(&Message::Ready(dispatch::hello()?));
    match answer_calls(reader)? {
        Last::PowerOff => Ok(()),
        Last::Closed => bail!("the host closed the channel"),
    }
}

/// Serves standard input and output until end of file: for a job in a process of its own.
pub(crate) fn serve_standard_streams() -> Result<()> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    outbox::open(output.into())?;
    answer_calls(File::from(input)).map(drop)
}

/// The source of calls: the port, also after it was unbound and bound again.
struct Inbox(File);

impl Read for Inbox {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                self.0 = outbox::port_again().ok_or(error)??;
                self.0.read(buffer)
            }
            read => read,
        }
    }
}

/// Why there are no more calls.
enum Last {
    PowerOff,
    Closed,
}

fn answer_calls(input: impl Read) -> Result<Last> {
    let mut reader = BufReader::new(input);
    let jobs = Arc::new(Jobs::default());
    let mut line = Vec::new();
    while frame::read_line(&mut reader, &mut line)? {
        let call = match frame::parse::<Call>(&line) {
            Ok(call) => call,
            Err(error @ FrameError::Malformed { .. }) => {
                outbox::send(&Message::Confused {
                    error: error.to_string(),
                });
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if let Request::PowerOff(_) = call.request {
            // Running jobs keep running until the power is off: nothing is closed.
            std::mem::forget(jobs);
            reply(call.id, Ok(serde_json::Value::Null));
            return Ok(Last::PowerOff);
        }
        answer_in_thread(call, Arc::clone(&jobs));
        children::reap();
    }
    Ok(Last::Closed)
}

/// Answers a call without making the next one wait: a request can take seconds.
fn answer_in_thread(call: Call, jobs: Arc<Jobs>) {
    let id = call.id;
    let name = call.request.name();
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || {
        let result = dispatch::execute(call.request, &jobs);
        reply(call.id, result.map_err(|error| failure::from_error(&error)));
    });
    if let Err(error) = spawned {
        reply(
            id,
            Err(failure::from_io(
                &format!("starting a thread for {name}"),
                &error,
            )),
        );
    }
}

fn reply(id: u64, result: Result<serde_json::Value, Failure>) {
    outbox::send(&Message::Reply { id, result });
}
