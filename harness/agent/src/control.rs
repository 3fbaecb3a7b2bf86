// SPDX-License-Identifier: MIT OR Apache-2.0

//! The channel to the host: reads calls, answers each from its own thread, and sends events.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    os::fd::AsFd,
    panic,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
};

use anyhow::{Context, Result, bail};
use protocol::{
    Call, Event, Failure, JobId, Message, Request,
    frame::{self, FrameError},
};

use crate::{children, dispatch, failure, files, init, jobs::Jobs, port};

/// The channel for messages to the host; the panic hook needs it, too.
static OUTBOX: OnceLock<Mutex<File>> = OnceLock::new();

/// Sends one message. When the channel is gone, only the console is left.
pub(crate) fn send(message: &Message) {
    let Some(outbox) = OUTBOX.get() else {
        return;
    };
    if let Err(error) = frame::write(&mut *lock(outbox), message) {
        files::log_line(&format!("agent: a message to the host is lost: {error}"));
    }
}

/// Sends an event of a job.
pub(crate) fn send_event(job: JobId, event: Event) {
    send(&Message::Event { job, event });
}

/// Takes a lock even if a thread panicked while holding it: then the guest is going down anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A panic anywhere reaches the host and the console, then the guest powers off.
pub(crate) fn install_panic_hook() {
    panic::set_hook(Box::new(|info| {
        report_panic(&info.to_string());
        init::power_off();
    }));
}

/// Tells the host and the console why the guest powers off.
pub(crate) fn report_panic(message: &str) {
    files::log_line(&format!("agent panicked: {message}"));
    if let Some(outbox) = OUTBOX.get() {
        // The panicking thread may be the one that holds the lock.
        if let Ok(mut outbox) = outbox.try_lock() {
            let message = Message::Panicked {
                message: message.to_owned(),
            };
            // The console has it already.
            drop(frame::write(&mut *outbox, &message));
        }
    }
}

/// Opens the channel and serves it until the host asks to power off or goes away.
pub(crate) fn serve() -> Result<()> {
    let port = port::open()?;
    let reader = Inbox(port.try_clone()?);
    open_outbox(port)?;
    send(&Message::Ready(dispatch::hello()?));
    match answer_calls(reader)? {
        Last::PowerOff => Ok(()),
        Last::Closed => bail!("the host closed the channel"),
    }
}

/// Serves standard input and output until end of file: for a job in a process of its own.
pub(crate) fn serve_standard_streams() -> Result<()> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    open_outbox(output.into())?;
    answer_calls(File::from(input)).map(drop)
}

fn open_outbox(file: File) -> Result<()> {
    if OUTBOX.set(Mutex::new(file)).is_err() {
        bail!("the channel is open already");
    }
    Ok(())
}

/// Does `work` while the port is unbound. Messages to the host wait meanwhile.
pub(crate) fn without_port(work: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut outbox = lock(OUTBOX.get().context("there is no channel")?);
    let device = port::unbind()?;
    let done = work();
    port::bind(&device)?;
    *outbox = port::open()?;
    done
}

/// The source of calls: the port, also after it was unbound and bound again.
struct Inbox(File);

impl Read for Inbox {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                let outbox = OUTBOX.get().ok_or(error)?;
                // Locked until the port is bound again.
                self.0 = lock(outbox).try_clone()?;
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
                send(&Message::Confused {
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
    send(&Message::Reply { id, result });
}
