// SPDX-License-Identifier: MIT OR Apache-2.0

//! The channel to the host: reads calls, answers each from a thread of its own, carries events.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader},
    os::fd::AsFd,
    panic,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use protocol::{
    Call, Event, Failure, JobId, Message, PORT_NAME, Request,
    frame::{self, FrameError},
};

use crate::{children, dispatch, failure, files, init, jobs::Jobs};

/// Where messages to the host go; also the panic hook needs it.
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

/// A lock that a panicked thread held is taken all the same: the guest is going down then.
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
    let path = find_port()?;
    let port = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("opening {}", path.display()))?;
    let reader = port.try_clone()?;
    open_outbox(port)?;
    send(&Message::Ready(dispatch::hello()?));
    match answer_calls(reader)? {
        Last::PowerOff => Ok(()),
        Last::Closed => bail!("the host closed the channel"),
    }
}

/// Serves standard input and output until the former ends: for a job in a process of its own.
pub(crate) fn serve_standard_streams() -> Result<()> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    open_outbox(output.into())?;
    answer_calls(input.into()).map(drop)
}

fn open_outbox(file: File) -> Result<()> {
    if OUTBOX.set(Mutex::new(file)).is_err() {
        bail!("the channel is open already");
    }
    Ok(())
}

/// Why there are no more calls.
enum Last {
    PowerOff,
    Closed,
}

fn answer_calls(input: File) -> Result<Last> {
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
            // What runs does so until the power is off: nothing is closed.
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

/// Finds the port by its name. The driver's probe may still be running at boot.
fn find_port() -> Result<PathBuf> {
    const PORTS: &str = "/sys/class/virtio-ports";
    for _ in 0..500 {
        if let Ok(ports) = fs::read_dir(PORTS) {
            for port in ports.flatten() {
                let name = fs::read_to_string(port.path().join("name")).unwrap_or_default();
                let device = PathBuf::from("/dev").join(port.file_name());
                if name.trim_end() == PORT_NAME && device.exists() {
                    return Ok(device);
                }
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    bail!("no virtio-serial port is named {PORT_NAME} (in {PORTS})")
}
