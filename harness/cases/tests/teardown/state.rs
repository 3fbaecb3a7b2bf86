// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the owner of device memory is doing when an event happens, and what it then sees.

use std::{
    fmt::{self, Display, Formatter},
    time::{Duration, Instant},
};

use cases::{Family, Refusal, Result, Stream, Testbed};
use libc::ESRCH;
use protocol::{
    Command, DevmemSink, DevmemSource, Failure, JobSpec, Memory, Release, TcpSink, TcpSource,
    ZcrxMemory, ZcrxSink,
    devmem::{DevmemSinkReport, DevmemSourceReport},
    zcrx::ZcrxSinkReport,
};
use vm::JobHandle;

use crate::{Event, Outcome, PAIRS, event::Happened};

pub(crate) const MIB: u64 = 1 << 20;

/// The queue that is bound, or the pair that is sent on.
pub(crate) const QUEUE: u32 = 1;

/// Size of the owner's memory.
const MEMORY: u64 = 8 * MIB;

/// How long to wait for events before checking again.
const PAUSE: Duration = Duration::from_millis(100);

/// Timeout for something that should take a second.
const PATIENCE: Duration = Duration::from_secs(100);

/// What the owner is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Its queue is bound to a dma-buf; it waits for a sender, which comes after the event.
    Idle,
    /// It receives into a dma-buf.
    Receiving,
    /// It has received into a dma-buf until the dma-buf was full.
    Held,
    /// It sends from a dma-buf.
    Sending,
    /// It receives through io_uring into a dma-buf.
    Zcrx,
}

impl State {
    pub(crate) const ALL: [Self; 5] = [
        Self::Idle,
        Self::Receiving,
        Self::Held,
        Self::Sending,
        Self::Zcrx,
    ];

    /// Whether the binding must not be closed before the guest ends, after this.
    ///
    /// Linux 7.3 holds no reference to the device that a dma-buf is attached to, and unmaps it for
    /// that device when the binding is closed (`__net_devmem_dmabuf_binding_free()` in
    /// net/core/devmem.c). And a TX binding does not notice when its interface goes away, whose
    /// lock is taken on close (`netdev_nl_sock_priv_destroy()` in net/core/netdev-genl.c).
    pub(crate) fn binding_stays(self, happened: Happened) -> bool {
        match happened {
            Happened::NicGone => self != Self::Zcrx,
            Happened::DriverGone => self == Self::Sending,
            Happened::Done | Happened::Refused(_) | Happened::OwnerGone => false,
        }
    }
}

/// A state that was built.
pub(crate) struct Scene<'g> {
    bed: &'g Testbed,
    state: State,
    stream: Stream,
    owner: Owner<'g>,
    far: Far<'g>,
}

/// Who owns the memory.
enum Owner<'g> {
    Sink(JobHandle<'g, DevmemSink>),
    Ring(JobHandle<'g, ZcrxSink>),
    Source(JobHandle<'g, DevmemSource>),
}

/// The other end of the connection.
enum Far<'g> {
    None,
    Source(JobHandle<'g, TcpSource>),
    Sink(JobHandle<'g, TcpSink>),
}

/// How the owner ended.
struct End {
    /// All payload was taken.
    whole: bool,
    /// Bytes that were not where they should be.
    outside: u64,
    error: Option<Failure>,
    /// The whole report, for people.
    report: String,
}

impl<'g> Scene<'g> {
    /// Builds a state, with an owner that the event can happen to; the NIC has header split on.
    pub(crate) fn build(bed: &'g Testbed, state: State, event: Event) -> Result<Self> {
        let process = event == Event::KillOwner;
        steer(bed, state)?;
        let stream = match state {
            State::Sending => bed.stream(bed.local, bed.peer, Family::V4),
            _ => bed.stream(bed.peer, bed.local, Family::V4),
        };
        let mut far = Far::None;
        let owner = match state {
            State::Idle | State::Receiving | State::Held => {
                let release = match state {
                    State::Held => Release::Never,
                    _ => Release::Immediate,
                };
                let sink = stream.devmem_sink_spec(QUEUE, MEMORY, release);
                Owner::Sink(start(bed, sink, process)?)
            }
            State::Zcrx => {
                let memory = ZcrxMemory::DmaBuf(Memory::Udmabuf);
                let ring = stream.zcrx_sink_spec(QUEUE, memory, MEMORY, Release::Immediate);
                Owner::Ring(start(bed, ring, process)?)
            }
            State::Sending => {
                far = Far::Sink(stream.sink(bed)?);
                let source = stream.devmem_source_spec(None, MEMORY, 256 << 10);
                Owner::Source(start(bed, source, process)?)
            }
        };
        let mut scene = Self {
            bed,
            state,
            stream,
            owner,
            far,
        };
        match state {
            State::Idle => {}
            State::Sending | State::Receiving | State::Zcrx => {
                scene.start_sender()?;
                scene.wait_owner_bytes(MIB)?;
            }
            State::Held => {
                let before = bed.statistic(bed.local, "rx_starved")?;
                scene.start_sender()?;
                while bed.statistic(bed.local, "rx_starved")? == before {
                    scene.next_event(PAUSE)?;
                }
            }
        }
        Ok(scene)
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Tells the owner something.
    pub(crate) fn tell_owner(&self, command: Command) -> Result {
        Ok(match &self.owner {
            Owner::Sink(job) => job.tell(command),
            Owner::Ring(job) => job.tell(command),
            Owner::Source(job) => job.tell(command),
        }?)
    }

    /// Says what the owner sees after the event, and ends it.
    pub(crate) fn watch(self, happened: Happened) -> Result<Outcome> {
        match happened {
            Happened::Done => self.flow(),
            Happened::Refused(errno) => Ok(match self.flow()? {
                Outcome::GoesOn => Outcome::Refused(errno),
                other => Outcome::Other(format!("refused with errno {errno}, but {other}")),
            }),
            Happened::OwnerGone => {
                let outcome = match self.owner.join() {
                    // The job's process was killed.
                    Err(error) if error.errno() == Some(ESRCH) => Outcome::Killed,
                    Err(error) => return Err(error),
                    Ok(end) => Outcome::Other(end.report),
                };
                self.far.stop()?;
                Ok(outcome)
            }
            Happened::DriverGone | Happened::NicGone => {
                let binding_stays = self.state.binding_stays(happened);
                self.silence(binding_stays)
            }
        }
    }

    /// Checks that payload keeps flowing, ends, and arrives whole; or returns what ended it.
    fn flow(mut self) -> Result<Outcome> {
        if matches!(self.far, Far::None) {
            self.start_sender()?;
        }
        // Progress reported before the event was over does not count.
        while self.next_event(Duration::ZERO)?.is_some() {}
        let mut seen = None;
        let deadline = Instant::now() + PATIENCE;
        let mut finishing = false;
        while !self.owner.ended() {
            if Instant::now() > deadline {
                return Ok(Outcome::Other(format!("stalls after {seen:?} bytes")));
            }
            if self.state == State::Held {
                self.release()?;
            }
            let Some(protocol::Event::Progress { bytes }) = self.next_event(PAUSE)? else {
                continue;
            };
            let first = *seen.get_or_insert(bytes);
            if bytes >= first + 4 * MIB && !finishing {
                finishing = true;
                match &self.far {
                    Far::Source(source) => source.tell(Command::Finish)?,
                    Far::Sink(_) | Far::None => self.tell_owner(Command::Finish)?,
                }
            }
        }
        let end = self.owner.join()?;
        if !finishing || !end.whole {
            self.far.stop()?;
            return Ok(match end.error {
                Some(Failure {
                    errno: Some(errno), ..
                }) => Outcome::Error(errno),
                None if self.state == State::Zcrx => Outcome::Ends,
                _ => Outcome::Other(end.report),
            });
        }
        if let Some(wrong) = self.far.join()? {
            return Ok(Outcome::Other(wrong));
        }
        Ok(match end.outside {
            0 => Outcome::GoesOn,
            _ => Outcome::InHostMemory,
        })
    }

    /// Has the owner return its tokens, if it still has a connection to return them on.
    fn release(&self) -> Result {
        match &self.owner {
            Owner::Sink(job) => job.tell(Command::ReleaseAll)?,
            Owner::Ring(_) | Owner::Source(_) => {}
        }
        Ok(())
    }

    /// There is no NIC: an owner that gets no error keeps waiting.
    fn silence(mut self, binding_stays: bool) -> Result<Outcome> {
        for _ in 0..5 {
            self.next_event(PAUSE)?;
        }
        if self.owner.ended() {
            let end = self.owner.join()?;
            self.far.stop()?;
            return Ok(match end.error {
                Some(Failure {
                    errno: Some(errno), ..
                }) => Outcome::Error(errno),
                _ => Outcome::Other(end.report),
            });
        }
        self.far.stop()?;
        self.owner.leave(binding_stays)?;
        Ok(Outcome::Silence)
    }

    /// Lets the peer send, until it is told to finish.
    fn start_sender(&mut self) -> Result {
        if self.state != State::Sending {
            self.far = Far::Source(self.stream.source(self.bed, None, &[64 << 10], 0)?);
        }
        Ok(())
    }

    fn wait_owner_bytes(&mut self, bytes: u64) -> Result {
        match &mut self.owner {
            Owner::Sink(job) => job.wait_bytes(bytes),
            Owner::Ring(job) => job.wait_bytes(bytes),
            Owner::Source(job) => job.wait_bytes(bytes),
        }?;
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Option<protocol::Event>> {
        Ok(match &mut self.owner {
            Owner::Sink(job) => job.next_event(timeout),
            Owner::Ring(job) => job.next_event(timeout),
            Owner::Source(job) => job.next_event(timeout),
        }?)
    }
}

impl Owner<'_> {
    fn ended(&self) -> bool {
        match self {
            Self::Sink(job) => job.ended(),
            Self::Ring(job) => job.ended(),
            Self::Source(job) => job.ended(),
        }
    }

    fn join(self) -> Result<End> {
        let end = match self {
            Self::Sink(job) => job.join()?.into(),
            Self::Ring(job) => job.join()?.into(),
            Self::Source(job) => job.join()?.into(),
        };
        Ok(end)
    }

    /// Ends an owner whose NIC is gone. A binding that must stay does so until the job is joined,
    /// which never happens.
    fn leave(self, binding_stays: bool) -> Result {
        match self {
            Self::Sink(job) if binding_stays => job.tell(Command::Stop)?,
            Self::Sink(job) => drop(job.stop()?),
            Self::Ring(job) => drop(job.stop()?),
            Self::Source(job) => job.tell(Command::Stop)?,
        }
        Ok(())
    }
}

impl Far<'_> {
    /// Ends it, whatever it did.
    fn stop(self) -> Result {
        match self {
            Self::None => {}
            Self::Source(job) => drop(job.stop()?),
            Self::Sink(job) => drop(job.stop()?),
        }
        Ok(())
    }

    /// Waits for its end; says what was wrong.
    fn join(self) -> Result<Option<String>> {
        let (report, right) = match self {
            Self::None => return Ok(None),
            Self::Source(job) => {
                let report = job.join()?;
                let right = report.delivered;
                (format!("{report:?}"), right)
            }
            Self::Sink(job) => {
                let report = job.join()?;
                let right = report.end_of_stream && report.mismatch.is_none();
                (format!("{report:?}"), right)
            }
        };
        Ok((!right).then_some(report))
    }
}

impl From<DevmemSinkReport> for End {
    fn from(report: DevmemSinkReport) -> Self {
        Self {
            whole: report.end_of_stream && report.mismatch.is_none(),
            outside: report.linear_bytes,
            report: format!("{report:?}"),
            error: report.error,
        }
    }
}

impl From<ZcrxSinkReport> for End {
    fn from(report: ZcrxSinkReport) -> Self {
        Self {
            whole: report.end_of_stream && report.mismatch.is_none(),
            outside: report.copied_bytes,
            report: format!("{report:?}"),
            error: report.error,
        }
    }
}

impl From<DevmemSourceReport> for End {
    fn from(report: DevmemSourceReport) -> Self {
        Self {
            whole: report.delivered,
            outside: report.copied,
            report: format!("{report:?}"),
            error: report.error,
        }
    }
}

/// Starts a job, in a process of its own if it is to be killed.
fn start<'g, J: JobSpec>(
    bed: &'g Testbed,
    job: J,
    process: bool,
) -> std::result::Result<JobHandle<'g, J>, vm::Error> {
    match process {
        true => bed.guest.start_process(job),
        false => bed.guest.start(job),
    }
}

/// Steers all TCP to the queue, or for a sender, everything it sends to the queue's pair.
fn steer(bed: &Testbed, state: State) -> Result {
    if state != State::Sending {
        return bed.steer(bed.local, &[QUEUE]);
    }
    bed.steer(bed.local, &[0])?;
    let processors = format!("{:x}", (1 << PAIRS) - 1);
    bed.set_tx_queue(bed.local.interface, QUEUE, "xps_cpus", processors)
}

/// Its part of a test's name.
impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Receiving => "receiving",
            Self::Held => "held",
            Self::Sending => "sending",
            Self::Zcrx => "zcrx",
        })
    }
}
