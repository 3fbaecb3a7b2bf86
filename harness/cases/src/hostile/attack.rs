// SPDX-License-Identifier: MIT OR Apache-2.0

//! One plan: traffic and changes while the NIC lies, and what works after it.

use std::time::{Duration, Instant};

use model::nic::Plan;
use protocol::{
    JobSpec, Release, TcpSource, UdpSink, UdpSource,
    kernel::WriteFile,
    rings::{RingChange, SetRings, TcpDataSplit},
    traffic::Ping,
};
use vm::{Error, Images, JobHandle, OUR_NIC};

use super::outcome::{Harm, Outcome};
use crate::{Driver, Family, Nic, Refusal, Result, Station, Stream, Testbed, skip};

/// How long traffic may take while the NIC lies.
const ATTACK: Duration = Duration::from_millis(800);
/// How long the driver may take to recover: the kernel's watchdog for TX queues alone takes up to 10 s.
const RECOVERY: Duration = Duration::from_secs(25);
/// How long it may take after the interface was brought up anew, or the driver was bound anew.
const RESTART: Duration = Duration::from_secs(20);
/// How long a stream may take once the NIC is honest.
const STREAM: Duration = Duration::from_secs(5);
/// Bytes of a stream.
const BYTES: u64 = 128 << 10;
const DATAGRAMS: u64 = 40;
/// The queue that device memory is bound to.
const BOUND: u32 = 1;

type Step<T = ()> = std::result::Result<T, Harm>;

impl Testbed {
    /// Makes the NIC under test lie as a plan says. Returns how often it told each lie of the plan before.
    ///
    /// # Errors
    ///
    /// Those of [`vm::Guest::lie`].
    pub fn lie(&self, plan: &Plan) -> Result<Vec<u32>> {
        Ok(self.guest.lie(
            self.local.wire,
            self.local.end,
            Some(&serde_json::to_value(plan)?),
        )?)
    }

    /// A guest for [`Self::attack`], whose NIC must be one of ours.
    ///
    /// # Errors
    ///
    /// Those of booting.
    pub fn hostile(name: &str) -> Result<Self> {
        if Nic::from_env()?.device.as_deref() != Some(OUR_NIC) {
            skip::skip("the NIC is none of ours, so that it tells no lies")?;
        }
        Self::devmem_options().boot(name)?.prepare()
    }

    /// As [`Self::hostile`], with these images, for a program.
    ///
    /// # Errors
    ///
    /// Those of booting.
    pub fn hostile_images(images: &Images, name: &str) -> Result<Self> {
        let options = Self::devmem_options().driver(Driver::RigbModel);
        options.boot_images(images, name)?.prepare()
    }

    fn prepare(self) -> Result<Self> {
        let bed = self;
        bed.steer(bed.local, &[BOUND])?;
        bed.guest.allow_log(&["NETDEV WATCHDOG"]);
        for ns in [bed.local.ns, bed.peer.ns] {
            // A connection that is not accepted in three seconds is none.
            bed.guest.call(WriteFile {
                ns,
                path: "/proc/sys/net/ipv4/tcp_syn_retries".to_owned(),
                contents: "1".to_owned(),
            })?;
        }
        Ok(bed)
    }

    /// Carries out a plan. Returns what became of it, and how often each lie was told.
    ///
    /// # Errors
    ///
    /// What must not happen, whatever a NIC does. The guest may be lost.
    pub fn attack(&self, plan: &Plan) -> Step<(Outcome, Vec<u32>)> {
        let attack = Attack {
            bed: self,
            believes: plan.lies.iter().any(|lie| lie.kind.is_believed()),
        };
        self.lie(plan)?;
        let disturbed = attack.traffic(plan)?;
        let told = self.lie(&Plan::default())?;
        let outcome = match attack.works_within(RECOVERY)? {
            true if disturbed => Outcome::Recovered,
            true => Outcome::Unharmed,
            false => attack.restart()?,
        };
        attack.check()?;
        Ok((outcome, told))
    }
}

struct Attack<'a> {
    bed: &'a Testbed,
    /// Wrong bytes are the NIC's fault.
    believes: bool,
}

impl Attack<'_> {
    /// Uses the NIC in all ways. Says whether anything was lost.
    fn traffic(&self, plan: &Plan) -> Step<bool> {
        let bed = self.bed;
        let lost = !self.device_memory()?;
        self.change(plan)?;
        let [there, back] = [(bed.local, bed.peer), (bed.peer, bed.local)];
        let lost = !self.datagrams(there)? | lost;
        Ok(!self.datagrams(back)? | lost)
    }

    /// A stream into device memory. Says whether all of it came.
    fn device_memory(&self) -> Step<bool> {
        let bed = self.bed;
        let stream = bed.stream(bed.peer, bed.local, Family::V4);
        let spec = stream.devmem_sink_spec(BOUND, 1 << 20, Release::Immediate);
        let Some(sink) = granted(bed.guest.start(spec))? else {
            return Ok(false);
        };
        let Some(source) = granted(bed.guest.start(source(&stream)))? else {
            sink.stop()?;
            return Ok(false);
        };
        let sink = join_within(sink, ATTACK)?;
        let source = source.stop()?;
        if let Some(mismatch) = sink.mismatch
            && !self.believes
        {
            return Err(Harm::WrongBytes(format!("device memory: {mismatch:?}")));
        }
        Ok(sink.bytes == BYTES && source.delivered)
    }

    /// Numbered datagrams. Says whether all of them came.
    fn datagrams(&self, (from, to): (Station, Station)) -> Step<bool> {
        let bed = self.bed;
        let listen = to.socket(Family::V4, bed.port());
        let seed = u64::from(listen.port());
        let mut sink = bed.guest.start(UdpSink {
            ns: to.ns,
            listen,
            seed,
        })?;
        let source = granted(bed.guest.start(UdpSource {
            ns: from.ns,
            bind: None,
            connect: listen,
            seed,
            datagrams: Some(DATAGRAMS),
            size: 1400,
            batch: None,
            pause_us: 0,
        }))?;
        let Some(source) = source else {
            sink.stop()?;
            return Ok(false);
        };
        let source = join_within(source, ATTACK)?;
        // What is late is as good as lost, but there is something for the NIC to lie about.
        let _ = sink.next_event(Duration::from_millis(30))?;
        let sink = sink.stop()?;
        // The peer's NIC is honest.
        let believes = self.believes && to.end == bed.local.end;
        if sink.corrupt > 0 && !believes {
            return Err(Harm::WrongBytes(format!("datagrams: {sink:?}")));
        }
        Ok(sink.received == source.sent && source.sent == DATAGRAMS)
    }

    /// Changes something, by the plan; the driver may refuse to.
    fn change(&self, plan: &Plan) -> Step {
        let bed = self.bed;
        let local = bed.local;
        let value = plan.lies.first().map_or(0, |lie| lie.value);
        let rings = |rx| SetRings {
            ns: local.ns,
            interface: local.name(),
            change: RingChange {
                rx: Some(rx),
                ..RingChange::default()
            },
        };
        match value >> 32 & 7 {
            0 => {
                refusable(bed.set_interface(local, false))?;
                refusable(bed.set_interface(local, true))
            }
            1 => {
                granted(bed.guest.call(rings(256)))?;
                granted(bed.guest.call(rings(512)))?;
                Ok(())
            }
            2 => {
                refusable(bed.set_header_split(local, TcpDataSplit::Off))?;
                refusable(bed.set_header_split(local, TcpDataSplit::On))
            }
            3 => refusable(bed.statistic(local, "rx_split").map(drop)),
            _ => Ok(()),
        }
    }

    /// Waits until everything works.
    fn works_within(&self, patience: Duration) -> Step<bool> {
        let bed = self.bed;
        let deadline = Instant::now() + patience;
        let both = [(bed.local, bed.peer), (bed.peer, bed.local)];
        loop {
            // Queues hang one by one, and so do they recover.
            if self.answers()? && self.transfers(both[0])? && self.transfers(both[1])? {
                return Ok(true);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
        }
    }

    /// Whether a stream arrives, soon.
    fn transfers(&self, (from, to): (Station, Station)) -> Step<bool> {
        let bed = self.bed;
        let stream = bed.stream(from, to, Family::V4);
        let sink = stream.sink(bed)?;
        let Some(source) = granted(bed.guest.start(source(&stream)))? else {
            sink.stop()?;
            return Ok(false);
        };
        let sink = join_within(sink, STREAM)?;
        source.stop()?;
        match sink.mismatch {
            Some(mismatch) => Err(Harm::WrongBytes(format!("after the lies: {mismatch:?}"))),
            None => Ok(sink.bytes == BYTES),
        }
    }

    fn answers(&self) -> Step<bool> {
        let ping = Ping {
            ns: self.bed.local.ns,
            to: self.bed.peer.address(Family::V4),
            count: 1,
            size: 1000,
            timeout_ms: 200,
        };
        // Without an interface there is no route.
        let report = granted(self.bed.guest.call(ping))?;
        Ok(report.is_some_and(|report| report.received == 1))
    }

    /// What a user would do: bring the interface up anew; bind the driver anew.
    fn restart(&self) -> Step<Outcome> {
        let bed = self.bed;
        refusable(bed.set_interface(bed.local, false))?;
        refusable(bed.set_interface(bed.local, true))?;
        if self.works_within(RESTART)? {
            return Ok(Outcome::Restarted);
        }
        let anew = || -> Result {
            bed.unload_driver()?;
            bed.load_driver()?;
            bed.set_up()?;
            bed.set_header_split(bed.local, TcpDataSplit::On)?;
            bed.steer(bed.local, &[BOUND])
        };
        anew().map_err(|error| Harm::Hang(format!("the driver can't be bound anew: {error}")))?;
        match self.works_within(RESTART)? {
            true => Ok(Outcome::Detached),
            false => Err(Harm::Hang("nothing helps but a new guest".to_owned())),
        }
    }

    /// Looks for complaints of the kernel's and of the model's.
    fn check(&self) -> Step {
        self.bed.guest.check_log()?;
        self.bed.guest.check_nics()?;
        Ok(())
    }
}

fn source(stream: &Stream) -> TcpSource {
    TcpSource {
        ns: stream.from.ns,
        bind: None,
        connect: stream.to.socket(stream.family, stream.port),
        seed: stream.seed,
        bytes: Some(BYTES),
        chunks: vec![64 << 10],
        pause_us: 0,
        hop_by_hop: 0,
    }
}

/// What was granted; nothing if the guest's kernel has refused it.
fn granted<T>(result: std::result::Result<T, Error>) -> Step<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.errno().is_some() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn refusable(result: Result) -> Step {
    match result {
        Err(error) if error.errno().is_none() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Waits for a job, and stops it then.
fn join_within<J: JobSpec>(mut job: JobHandle<'_, J>, patience: Duration) -> Step<J::Outcome> {
    let deadline = Instant::now() + patience;
    while !job.ended() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || job.next_event(left)?.is_none() && !job.ended() {
            return Ok(job.stop()?);
        }
    }
    Ok(job.join()?)
}
