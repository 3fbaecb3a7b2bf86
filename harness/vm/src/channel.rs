// SPDX-License-Identifier: MIT OR Apache-2.0

//! Calls, replies and events over the control channel.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs::File,
    io::{self, BufReader, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use protocol::{
    Call, Event, Failure, JobId, Message, Request,
    agent::AgentInfo,
    frame::{self, FrameError},
};
use serde_json::Value;

use crate::lock::lock;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Silence {
    /// None came in time.
    Timeout,
    /// The channel is closed: the guest or QEMU is gone.
    Closed,
    /// The channel carried something that is no message, or could not be written.
    Broken(String),
    /// The agent panicked.
    Panicked(String),
}

/// The host's end of the channel. Any thread may use it.
#[derive(Debug)]
pub(crate) struct Channel {
    writer: Mutex<UnixStream>,
    last_call: AtomicU64,
    inbox: Arc<Inbox>,
}

/// Messages of the guest that were not taken yet.
#[derive(Debug)]
struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
    transcript: Mutex<File>,
    start: Instant,
}

#[derive(Debug, Default)]
struct State {
    ready: Option<AgentInfo>,
    /// Calls that are waited for.
    waiting: HashSet<u64>,
    replies: HashMap<u64, Result<Value, Failure>>,
    events: HashMap<JobId, VecDeque<Event>>,
    /// Nothing comes after this.
    end: Option<Silence>,
}

impl Channel {
    /// Starts to listen. Everything that is said goes to `transcript` as well.
    pub(crate) fn new(socket: UnixStream, transcript: File, timeout: Duration) -> io::Result<Self> {
        // A guest that does not read must not block the host for ever.
        socket.set_write_timeout(Some(timeout))?;
        let reader = BufReader::new(socket.try_clone()?);
        let inbox = Arc::new(Inbox {
            state: Mutex::default(),
            changed: Condvar::new(),
            transcript: Mutex::new(transcript),
            start: Instant::now(),
        });
        let listener = Arc::clone(&inbox);
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || listener.listen(reader))?;
        Ok(Self {
            writer: Mutex::new(socket),
            last_call: AtomicU64::new(0),
            inbox,
        })
    }

    /// Waits for the agent's first message.
    pub(crate) fn wait_ready(&self, timeout: Duration) -> Result<AgentInfo, Silence> {
        self.inbox.wait(timeout, |state| state.ready.clone())
    }

    /// Sends a request and waits for its reply.
    pub(crate) fn call(
        &self,
        request: Request,
        timeout: Duration,
    ) -> Result<Result<Value, Failure>, Silence> {
        let id = self.last_call.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.inbox.state).waiting.insert(id);
        let reply = self
            .send(&Call { id, request })
            .and_then(|()| self.inbox.wait(timeout, |state| state.replies.remove(&id)));
        // A late reply is dropped.
        lock(&self.inbox.state).waiting.remove(&id);
        reply
    }

    /// Waits for the next event of a job.
    pub(crate) fn event(&self, job: JobId, timeout: Duration) -> Result<Event, Silence> {
        self.inbox
            .wait(timeout, |state| state.events.get_mut(&job)?.pop_front())
    }

    /// Drops a job's unread events.
    pub(crate) fn forget(&self, job: JobId) {
        lock(&self.inbox.state).events.remove(&job);
    }

    fn send(&self, call: &Call) -> Result<(), Silence> {
        let mut writer = lock(&self.writer);
        self.inbox.record(
            '>',
            serde_json::to_string(call).unwrap_or_default().as_bytes(),
        );
        match frame::write(&mut *writer, call) {
            Ok(()) => Ok(()),
            Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(Silence::Timeout)
            }
            // The reader knows best why.
            Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.inbox.wait(Duration::from_secs(5), |_| None)
            }
            Err(error) => Err(Silence::Broken(error.to_string())),
        }
    }
}

impl Inbox {
    /// Reads to the end of the channel.
    fn listen(&self, mut reader: BufReader<UnixStream>) {
        let mut line = Vec::new();
        let end = loop {
            match frame::read_line(&mut reader, &mut line) {
                Ok(true) => {}
                // QEMU is gone, within a message or not.
                Ok(false) | Err(FrameError::Truncated) => break Silence::Closed,
                Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                    break Silence::Closed;
                }
                Err(error) => break Silence::Broken(error.to_string()),
            }
            self.record('<', &line);
            match frame::parse(&line) {
                Ok(Message::Confused { error }) => {
                    break Silence::Broken(format!("the agent did not understand: {error}"));
                }
                Ok(Message::Panicked { message }) => break Silence::Panicked(message),
                Ok(message) => self.take(message),
                Err(error) => break Silence::Broken(error.to_string()),
            }
        };
        tracing::debug!(?end, "the control channel ended");
        lock(&self.state).end = Some(end);
        self.changed.notify_all();
    }

    fn take(&self, message: Message) {
        let mut state = lock(&self.state);
        match message {
            Message::Ready(info) => state.ready = Some(info),
            Message::Reply { id, result } => {
                if state.waiting.contains(&id) {
                    state.replies.insert(id, result);
                }
            }
            Message::Event { job, event } => state.events.entry(job).or_default().push_back(event),
            // They end the channel.
            Message::Confused { .. } | Message::Panicked { .. } => {}
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until `look` finds something. What is there is found also after the channel's end.
    fn wait<T>(
        &self,
        timeout: Duration,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, Silence> {
        let deadline = Instant::now() + timeout;
        let mut state = lock(&self.state);
        loop {
            if let Some(found) = look(&mut state) {
                return Ok(found);
            }
            if let Some(end) = &state.end {
                return Err(end.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Silence::Timeout);
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn record(&self, direction: char, line: &[u8]) {
        let at = self.start.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(line);
        // The transcript helps to understand a failure; losing it must not be one.
        if let Err(error) = writeln!(lock(&self.transcript), "{at:10.6} {direction} {text}") {
            tracing::warn!(%error, "a line of the transcript is lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{agent::Hello, kernel::LogLine};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn channel() -> (Channel, UnixStream) {
        let (host, guest) = UnixStream::pair().unwrap();
        let transcript = File::options().write(true).open("/dev/null").unwrap();
        (Channel::new(host, transcript, LONG).unwrap(), guest)
    }

    fn hello() -> Request {
        Request::Hello(Hello {})
    }

    #[test]
    fn replies_find_their_calls_whatever_their_order() {
        let (channel, guest) = channel();
        thread::scope(|scope| {
            let one = scope.spawn(|| channel.call(hello(), LONG));
            let two = scope.spawn(|| channel.call(LogLine { text: "x".into() }.into(), LONG));
            let mut reader = BufReader::new(guest.try_clone().unwrap());
            let mut line = Vec::new();
            let mut calls = Vec::new();
            for _ in 0..2 {
                assert!(frame::read_line(&mut reader, &mut line).unwrap());
                calls.push(frame::parse::<Call>(&line).unwrap());
            }
            for call in calls.iter().rev() {
                let result = Ok(Value::from(call.request.name()));
                frame::write(
                    &mut &guest,
                    &Message::Reply {
                        id: call.id,
                        result,
                    },
                )
                .unwrap();
            }
            assert_eq!(one.join().unwrap().unwrap().unwrap(), "Hello");
            assert_eq!(two.join().unwrap().unwrap().unwrap(), "LogLine");
        });
    }

    #[test]
    fn an_event_that_comes_before_anybody_knows_the_job_is_kept() {
        let (channel, guest) = channel();
        let job = JobId(3);
        let event = Event::Progress { bytes: 5 };
        frame::write(
            &mut &guest,
            &Message::Event {
                job,
                event: event.clone(),
            },
        )
        .unwrap();
        assert_eq!(channel.event(job, LONG), Ok(event));
    }

    #[test]
    fn a_guest_that_goes_away_ends_a_waiting_call() {
        let (channel, guest) = channel();
        thread::scope(|scope| {
            let call = scope.spawn(|| channel.call(hello(), LONG));
            let mut line = Vec::new();
            frame::read_line(&mut BufReader::new(&guest), &mut line).unwrap();
            drop(guest);
            assert_eq!(call.join().unwrap(), Err(Silence::Closed));
        });
    }

    #[test]
    fn a_silent_guest_is_a_timeout() {
        let (channel, _guest) = channel();
        let timeout = Duration::from_millis(10);
        assert_eq!(channel.call(hello(), timeout), Err(Silence::Timeout));
    }

    #[test]
    fn a_panic_of_the_agent_reaches_the_caller() {
        let (channel, guest) = channel();
        let message = "at the disco".to_owned();
        frame::write(
            &mut &guest,
            &Message::Panicked {
                message: message.clone(),
            },
        )
        .unwrap();
        assert_eq!(channel.call(hello(), LONG), Err(Silence::Panicked(message)));
    }

    #[test]
    fn noise_on_the_channel_is_quoted() {
        let (channel, mut guest) = channel();
        guest.write_all(b"login:\n").unwrap();
        let Err(Silence::Broken(message)) = channel.wait_ready(LONG) else {
            panic!("noise was accepted");
        };
        assert!(message.contains("login:"), "{message}");
    }
}
