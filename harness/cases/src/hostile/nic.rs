// SPDX-License-Identifier: MIT OR Apache-2.0

//! One plan of a NIC: traffic and changes while it lies, and what works after it.

use std::time::{Duration, Instant};

use model::lies::{Kind, Lie};
use protocol::{
    JobSpec, Release, TcpSource,
    kernel::WriteFile,
    link::{SetReceiveMode, WaitCarrier},
    rings::TcpDataSplit,
    traffic::Ping,
};
use vm::JobHandle;

use super::{
    outcome::{Harm, Outcome, Step, Trouble},
    victim::{Lies, granted},
};
use crate::{CaseError, Family, Refusal, Result, Station, Stream, Testbed};

/// How long traffic may take while the NIC lies.
const ATTACK: Duration = Duration::from_millis(800);
/// How long the driver may take to recover: the kernel's watchdog for TX queues alone takes up to 10 s.
const RECOVERY: Duration = Duration::from_secs(25);
/// How long it may take after the interface was brought up anew, or the driver was bound anew.
const RESTART: Duration = Duration::from_secs(20);
/// How long a stream may take once the NIC is honest.
const STREAM: Duration = Duration::from_secs(5);
/// What TCP waits for: a connection that is not accepted in three seconds is none; one that was closed gives up
/// what it has of a stream soon; and when the NIC works again, none waits for more than a second to try.
const LIMITS: [(&str, &str); 3] = [
    ("tcp_syn_retries", "1"),
    ("tcp_orphan_retries", "1"),
    ("tcp_rto_max_ms", "1000"),
];
/// Bytes of a stream.
const BYTES: u64 = 128 << 10;
const DATAGRAMS: u64 = 40;
/// The queue that device memory is bound to.
const BOUND: u32 = 1;
/// Descriptors of a ring, and those of one that a stream turns more than once.
const RING: u32 = 1024;
const OTHER_RING: u32 = 256;
const SHORT_RING: u32 = 64;
/// Bytes that rigb has the device fill of a header buffer, and the field that says how many it has.
const HEADER_BUFFER: u64 = 256;
const HDR_LEN: u64 = 0x3ff;

/// Whether a lie told this often can make wrong bytes look right to any driver: the device claims to have verified
/// or written what it hasn't (what it repeats may be the last piece of a packet as long as one to come), or reports
/// a wrong end of the headers, which only it has parsed. The IP header also says where a packet ends, so a driver
/// notices an extra piece, and a header that is longer than its buffer.
pub(super) fn is_believed(lie: &Lie, told: u32) -> bool {
    let mut values = (0..told.min(u64::BITS)).map(|told| lie.value_after(told));
    match lie.kind {
        Kind::Corrupt | Kind::NoData | Kind::Repeated | Kind::SplitFlag => told > 0,
        Kind::HeaderLength => values.any(|value| value & HDR_LEN <= HEADER_BUFFER),
        _ => false,
    }
}

/// Whether the driver may still come to a descriptor of this lie when the device is honest again.
fn outlasts(lie: &Lie, told: u32) -> bool {
    told > 0 && lie.kind == Kind::Repeated
}

/// Steers all TCP to the bound queue, and allows log messages for which only the NIC is to blame.
pub(super) fn prepare(bed: &Testbed) -> Result {
    bed.steer(bed.local, &[BOUND])?;
    bed.guest.allow_log(&["NETDEV WATCHDOG"]);
    for (what, limit) in LIMITS {
        for ns in [bed.local.ns, bed.peer.ns] {
            bed.guest.call(WriteFile::new(
                ns,
                format!("/proc/sys/net/ipv4/{what}"),
                limit,
            ))?;
        }
    }
    Ok(())
}

/// Brings the interface down, and unloads the driver: nothing may stay.
pub(super) fn let_go(bed: &Testbed) -> Step {
    let done = |result, what| match granted(result)? {
        Some(()) => Ok(()),
        None => Err(Trouble::from(Harm::Hang(format!("{what} is refused")))),
    };
    done(bed.set_interface(bed.local, false), "to bring it down")?;
    bed.wait_pools_gone(bed.local)
        .map_err(|error| match error.of_guest() {
            Some(error) => Trouble::from(error),
            None => Harm::Leak(error.to_string()).into(),
        })?;
    done(bed.unload_driver(), "to unload the driver")
}

pub(super) fn attack(lies: &Lies<'_>) -> Step<(Outcome, Vec<u32>)> {
    Attack {
        bed: lies.bed,
        lies,
    }
    .carry_out()
}

struct Attack<'a> {
    bed: &'a Testbed,
    lies: &'a Lies<'a>,
}

impl Attack<'_> {
    fn carry_out(&self) -> Step<(Outcome, Vec<u32>)> {
        // What plans before it left would change what the plan does.
        self.set_ring(self.ring())?;
        self.lies.begin()?;
        let lost = !self.device_memory(ATTACK, || self.lies.excuse())?;
        let up = self.change()?;
        let lost = !self.datagrams_both_ways()? | lost;
        let told = self.lies.end()?;
        let mut lies = self.lies.plan.lies.iter().zip(&told);
        let excused = lies.any(|(lie, &told)| outlasts(lie, told));
        // Nobody else brings up an interface that is down.
        let outcome = match up && self.works_within(RECOVERY, excused)? {
            true if lost => Outcome::Recovered,
            true => Outcome::Unharmed,
            false => self.restart()?,
        };
        Ok((outcome, told))
    }

    /// Datagrams. Says whether all of them came.
    fn datagrams_both_ways(&self) -> Step<bool> {
        let bed = self.bed;
        let [there, back] = [(bed.local, bed.peer), (bed.peer, bed.local)];
        Ok(self.datagrams(there)? & self.datagrams(back)?)
    }

    /// A repeated completion may sit anywhere in the ring, and harms a driver that comes there.
    fn ring(&self) -> u32 {
        let mut lies = self.lies.plan.lies.iter();
        match lies.any(|lie| lie.kind == Kind::Repeated) {
            true => SHORT_RING,
            false => RING,
        }
    }

    /// A stream into device memory, which may be wrong where that is excused. Says whether all of it came.
    fn device_memory(&self, patience: Duration, excuse: impl FnOnce() -> Step<bool>) -> Step<bool> {
        let bed = self.bed;
        let stream = bed.stream(bed.peer, bed.local, Family::V4);
        let spec = stream.devmem_sink_spec(BOUND, 1 << 20, Release::Immediate);
        let Some(sink) = granted(bed.guest.start(spec))? else {
            return Ok(false);
        };
        let Some(source) = granted(source(bed, &stream))? else {
            sink.stop()?;
            return Ok(false);
        };
        let sink = join_within(sink, patience)?;
        let source = source.stop()?;
        match sink.mismatch {
            Some(_) if excuse()? => Ok(false),
            Some(mismatch) => Err(Harm::WrongBytes(format!("device memory: {mismatch:?}")).into()),
            None => Ok(sink.bytes == BYTES && source.delivered),
        }
    }

    /// Whether device memory can be bound, and a stream into it arrives, soon.
    fn device_memory_works(&self, excused: bool) -> Step<bool> {
        // It may have been refused while the device lied.
        let split = granted(self.bed.set_header_split(self.bed.local, TcpDataSplit::On))?;
        Ok(split.is_some() && self.device_memory(STREAM, || Ok(excused))?)
    }

    /// Numbered datagrams. Says whether all of them came.
    fn datagrams(&self, (from, to): (Station, Station)) -> Step<bool> {
        let bed = self.bed;
        let datagrams = bed.datagrams(from, to, Family::V4, 1400);
        let mut sink = datagrams.sink(bed)?;
        let Some(source) = granted(datagrams.source(bed, Some(DATAGRAMS)))? else {
            sink.stop()?;
            return Ok(false);
        };
        let source = join_within(source, ATTACK)?;
        // What is late is as good as lost, but there is something for the NIC to lie about.
        let _ = sink.next_event(Duration::from_millis(30))?;
        let sink = sink.stop()?;
        // The peer's NIC is honest.
        if sink.corrupt > 0 && !(to.end == bed.local.end && self.lies.excuse()?) {
            return Err(Harm::WrongBytes(format!("datagrams: {sink:?}")).into());
        }
        Ok(sink.received == source.sent && source.sent == DATAGRAMS)
    }

    /// Changes something, by the plan; the driver may refuse to. Says whether the interface is up.
    fn change(&self) -> Step<bool> {
        let bed = self.bed;
        let local = bed.local;
        let value = self.lies.plan.lies.first().map_or(0, |lie| lie.value);
        match value >> 32 & 7 {
            0 => return self.up_anew(),
            1 => {
                self.set_ring(OTHER_RING)?;
                self.set_ring(self.ring())?;
            }
            2 => {
                granted(bed.set_header_split(local, TcpDataSplit::Off))?;
                granted(bed.set_header_split(local, TcpDataSplit::On))?;
            }
            3 => drop(granted(bed.statistic(local, "rx_split"))?),
            4 => {
                for on in [true, false] {
                    granted(bed.guest.call(SetReceiveMode::on(local, None, Some(on))))?;
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// Gives the RX rings so many descriptors, unless the driver refuses to.
    fn set_ring(&self, rx: u32) -> Step {
        let bed = self.bed;
        granted(bed.set_receive_ring(bed.local, rx)).map(drop)
    }

    /// Brings the interface down and up; says whether it is up then.
    fn up_anew(&self) -> Step<bool> {
        let (bed, local) = (self.bed, self.bed.local);
        granted(bed.set_interface(local, false))?;
        Ok(granted(bed.set_interface(local, true))?.is_some())
    }

    /// Waits until everything works. What is `excused` may be wrong until then.
    fn works_within(&self, patience: Duration, excused: bool) -> Step<bool> {
        let bed = self.bed;
        let deadline = Instant::now() + patience;
        let both = [(bed.local, bed.peer), (bed.peer, bed.local)];
        loop {
            // Queues hang one by one, and so do they recover.
            let transfers = |way| self.transfers(way, excused);
            if self.has_carrier()?
                && self.answers()?
                && transfers(both[0])?
                && transfers(both[1])?
                && self.device_memory_works(excused)?
            {
                return Ok(true);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
        }
    }

    /// Whether a stream arrives, soon.
    fn transfers(&self, (from, to): (Station, Station), excused: bool) -> Step<bool> {
        let bed = self.bed;
        let stream = bed.stream(from, to, Family::V4);
        let sink = stream.sink(bed)?;
        let Some(source) = granted(source(bed, &stream))? else {
            sink.stop()?;
            return Ok(false);
        };
        let sink = join_within(sink, STREAM)?;
        source.stop()?;
        match sink.mismatch {
            Some(_) if excused && to.end == self.bed.local.end => Ok(false),
            Some(mismatch) => Err(Harm::WrongBytes(format!("after the lies: {mismatch:?}")).into()),
            None => Ok(sink.bytes == BYTES),
        }
    }

    /// Packets alone don't tell: the kernel goes on sending for up to a second after the carrier is lost.
    fn has_carrier(&self) -> Step<bool> {
        let wait = WaitCarrier::on(self.bed.local, true, 200);
        Ok(granted(self.bed.guest.call(wait))?.is_some())
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
        // That empties the ring.
        if self.up_anew()? && self.works_within(RESTART, false)? {
            return Ok(Outcome::Restarted);
        }
        let anew = || -> Result {
            bed.unload_driver()?;
            bed.load_driver()?;
            bed.set_up()?;
            bed.set_header_split(bed.local, TcpDataSplit::On)?;
            bed.steer(bed.local, &[BOUND])
        };
        let refused = |error: &CaseError| error.errno().is_some();
        anew().map_err(|error| match refused(&error) {
            true => Harm::Hang(format!("the driver can't be bound anew: {error}")).into(),
            false => Trouble::from(error),
        })?;
        match self.works_within(RESTART, false)? {
            true => Ok(Outcome::Detached),
            false => Err(Harm::Hang("nothing helps but a new guest".to_owned()).into()),
        }
    }
}

fn source<'g>(bed: &'g Testbed, stream: &Stream) -> Result<JobHandle<'g, TcpSource>> {
    stream.source(bed, Some(BYTES), &[64 << 10], 0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_can_see_excuses_nothing() {
        let is_believed = |kind, value, told| {
            let lie = Lie {
                times: u32::MAX,
                ..Lie::once(kind, value)
            };
            is_believed(&lie, told)
        };
        assert!(is_believed(Kind::Corrupt, 0, 1));
        assert!(!is_believed(Kind::Corrupt, 0, 0));
        assert!(!is_believed(Kind::Length, 2, 1), "more than a buffer has");
        assert!(is_believed(Kind::HeaderLength, 256, 1));
        assert!(!is_believed(Kind::HeaderLength, 257, 1));
        // The next one is said to be 514 bytes long, and the one after that 4.
        assert!(!is_believed(Kind::HeaderLength, 257, 2));
        assert!(is_believed(Kind::HeaderLength, 257, 3));
    }
}
