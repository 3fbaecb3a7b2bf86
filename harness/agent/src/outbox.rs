// SPDX-License-Identifier: MIT OR Apache-2.0

//! What goes to the host: replies, events, and why the guest powers off.

use std::{
    fs::File,
    io,
    sync::{Mutex, OnceLock},
};

use anyhow::{Context, Result, bail};
use protocol::{Event, JobId, Message, frame};

use crate::{files, lock::lock, port};

/// The channel for messages to the host; the panic hook needs it, too.
static OUTBOX: OnceLock<Mutex<File>> = OnceLock::new();

/// Has messages written to `file`.
pub(crate) fn open(file: File) -> Result<()> {
    if OUTBOX.set(Mutex::new(file)).is_err() {
        bail!("the channel is open already");
    }
    Ok(())
}

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

/// Does `work` while the port is unbound. Messages to the host wait meanwhile.
pub(crate) fn without_port(work: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut outbox = lock(OUTBOX.get().context("there is no channel")?);
    let device = port::unbind()?;
    let done = work();
    port::bind(&device)?;
    *outbox = port::open()?;
    done
}

/// The port once more, when it is bound again.
pub(crate) fn port_again() -> Option<io::Result<File>> {
    // Locked until then.
    OUTBOX.get().map(|outbox| lock(outbox).try_clone())
}
