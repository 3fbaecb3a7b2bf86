// SPDX-License-Identifier: MIT OR Apache-2.0

//! A job that runs in the guest.

use std::{marker::PhantomData, time::Duration};

use protocol::{Command, Event, JobId, JobSpec, Join, Tell};

use crate::{Error, Guest, Result, guest::decode};

/// A running job. Its outcome is fetched with [`JobHandle::join`]; a handle that is dropped leaves
/// the job running.
#[derive(Debug)]
pub struct JobHandle<'g, J> {
    guest: &'g Guest,
    id: JobId,
    name: &'static str,
    ended: bool,
    spec: PhantomData<J>,
}

impl<'g, J: JobSpec> JobHandle<'g, J> {
    pub(crate) fn new(guest: &'g Guest, id: JobId, name: &'static str) -> Self {
        Self {
            guest,
            id,
            name,
            ended: false,
            spec: PhantomData,
        }
    }

    /// The job's number.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Tells the job something.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when the job does not understand the command, and those of a lost guest.
    pub fn tell(&self, command: Command) -> Result<()> {
        self.guest.call(Tell {
            job: self.id,
            command,
        })
    }

    /// Waits for the next event. `None` when none came within `timeout`, or the job ended.
    ///
    /// # Errors
    ///
    /// Those of a lost guest.
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>> {
        if self.ended {
            return Ok(None);
        }
        let event = self.guest.event(self.id, self.name, timeout)?;
        self.ended = event == Some(Event::Ended);
        Ok(event.filter(|event| *event != Event::Ended))
    }

    /// Waits for events until `wanted` finds what it looks for in one; the others are dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when the job is silent for the machine's call timeout,
    /// [`Error::JobEnded`] when it ends before, and those of a lost guest.
    pub fn wait_event<T>(&mut self, mut wanted: impl FnMut(Event) -> Option<T>) -> Result<T> {
        let timeout = self.guest.call_timeout();
        while let Some(event) = self.next_event(timeout)? {
            if let Some(found) = wanted(event) {
                return Ok(found);
            }
        }
        if self.ended {
            return Err(Error::JobEnded {
                job: format!("{} (job {})", self.name, self.id.0),
                logs: self.guest.logs(),
            });
        }
        Err(self.silent("an event", timeout))
    }

    /// Waits until the job has moved this many bytes.
    ///
    /// # Errors
    ///
    /// As [`JobHandle::wait_event`].
    pub fn wait_bytes(&mut self, wanted: u64) -> Result<u64> {
        self.wait_event(|event| match event {
            Event::Progress { bytes } if bytes >= wanted => Some(bytes),
            _ => None,
        })
    }

    /// Whether the job ended, as far as its events were read.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Waits for the job's end. It may take as long as it likes, as long as there are events.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when the job is silent for the machine's call timeout, and those of a
    /// lost guest.
    pub fn wait_end(&mut self) -> Result<()> {
        let timeout = self.guest.call_timeout();
        while !self.ended {
            if self.next_event(timeout)?.is_none() && !self.ended {
                return Err(self.silent("the end", timeout));
            }
        }
        Ok(())
    }

    /// Waits for the job's end ([`Self::wait_end`]) and returns its outcome.
    ///
    /// # Errors
    ///
    /// Those of [`Self::wait_end`].
    pub fn join(mut self) -> Result<J::Outcome> {
        self.wait_end()?;
        let outcome = self.guest.call(Join { job: self.id })?;
        self.guest.forget(self.id);
        decode(&format!("Join of {}", self.name), outcome, self.guest)
    }

    /// Stops the job at once and returns its outcome.
    ///
    /// # Errors
    ///
    /// As [`JobHandle::join`].
    pub fn stop(self) -> Result<J::Outcome> {
        self.tell(Command::Stop)?;
        self.join()
    }

    /// Lets a source end in good order and returns its outcome.
    ///
    /// # Errors
    ///
    /// As [`JobHandle::join`].
    pub fn finish(self) -> Result<J::Outcome> {
        self.tell(Command::Finish)?;
        self.join()
    }

    fn silent(&self, what: &str, timeout: Duration) -> Error {
        Error::Timeout {
            call: format!("{what} of {} (job {})", self.name, self.id.0),
            timeout,
            logs: self.guest.logs(),
        }
    }
}
