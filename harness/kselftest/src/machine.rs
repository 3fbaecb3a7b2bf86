// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs one test in a guest of its own, so that none stands in what another
//! left behind, and what the kernel complained about is one test's doing.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cases::{Ability, CaseError, Driver, Family, Testbed};
use protocol::kernel::WriteFile;
use protocol::program::{MountRoot, ProgramReport, RootSource, Streams};
use protocol::rings::TcpDataSplit;
use protocol::{Command, Event, Ns, Program};
use vm::{Error, Images, scan::Finding};

use crate::ktap::{self, Case, Verdict, WHOLE};
use crate::lines::Lines;
use crate::{Outcome, SELFTESTS, SOURCE, Test};

/// Where the image is mounted in the guest.
const ROOT: &str = "/selftests";
/// Exit status of a test that was skipped.
const SKIPPED: i32 = 4;
/// What the tests call the peer's namespace.
const PEER: &str = "peer";
/// The name of what the kernel's log has.
const LOG: &str = "(kernel log)";
/// A network for the tests that put a namespace behind the NIC, which the peer reaches through it.
const PREFIX: &str = "2001:db8:2::/64";
const MEMORY_MIB: u64 = 1536;
/// How long a test may say nothing. It is there to end a hang: an emulated guest on a busy machine
/// is slow.
const SILENCE: Duration = Duration::from_secs(420);
/// How long a test may take that goes on speaking.
const PATIENCE: Duration = Duration::from_secs(2400);
/// How long it may take to end when it is asked to: it cleans up.
const GRACE: Duration = Duration::from_secs(60);

/// What came of a test.
#[derive(Debug)]
pub struct Report {
    /// Its sub-cases. What befell the guest, or is in the kernel's log, is one that failed.
    pub outcomes: Vec<Outcome>,
    /// Where the guest's logs are, if it booted; `output.log` has what the test printed.
    pub logs: Option<PathBuf>,
}

/// Boots, runs the test, and tells each line it prints to `on_line`. `images` have the selftests.
pub fn run(images: &Images, driver: Driver, test: Test, on_line: &mut dyn FnMut(&str)) -> Report {
    let mut found = Found::default();
    if let Err(error) = try_run(images, driver, test, on_line, &mut found) {
        found.cases.push(failed(&complaint(&error)));
    }
    let outcome = |case: Case| Outcome {
        test: test.name.to_owned(),
        case: case.name,
        result: case.verdict,
        reason: case.reason,
        driver: driver.name().to_owned(),
    };
    Report {
        outcomes: found.cases.into_iter().map(outcome).collect(),
        logs: found.logs,
    }
}

/// What is known so far.
#[derive(Default)]
struct Found {
    cases: Vec<Case>,
    logs: Option<PathBuf>,
}

fn failed(reason: &str) -> Case {
    Case {
        name: WHOLE.to_owned(),
        verdict: Verdict::Fail,
        reason: reason.to_owned(),
    }
}

/// The lines of an error that say what happened, without where the logs are.
fn complaint(error: &CaseError) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).take(2).collect();
    lines.join(" ")
}

/// What the kernel complained about first, in a line.
fn log_case(finding: &Finding) -> Case {
    let line = finding.text.lines().next().unwrap_or_default();
    let line = line.split_once("] ").map_or(line, |(_, text)| text);
    Case {
        name: LOG.to_owned(),
        verdict: Verdict::Fail,
        reason: format!("{}: {}", finding.kind, line.trim()),
    }
}

fn try_run(
    images: &Images,
    driver: Driver,
    test: Test,
    on_line: &mut dyn FnMut(&str),
    found: &mut Found,
) -> cases::Result<()> {
    let Some(image) = &images.disk else {
        return Err(CaseError::new("this guest has no disk with the selftests"));
    };
    let bed = Testbed::options()
        .driver(driver)
        .cpus(test.cpus)
        .machine(|machine| machine.memory_mib(MEMORY_MIB).disk(image).snapshot())
        .boot_images(
            images,
            &format!("kselftest-{}-{}", driver.name(), test.name),
        )?;
    found.logs = Some(bed.guest.directory().to_owned());
    if let Some(combined) = test.channels {
        bed.set_channels(bed.local, combined)?;
    }
    if test.peer_splits && bed.nic().can(Ability::HeaderSplit) {
        bed.set_header_split(bed.peer, TcpDataSplit::On)?;
    }
    bed.guest.call(MountRoot {
        source: RootSource::Disk {
            device: "/dev/vda".to_owned(),
        },
        directory: ROOT.to_owned(),
        peer: PEER.to_owned(),
        for_users: Vec::new(),
    })?;
    set_ports(&bed, test)?;
    add_route(&bed)?;
    let mut output = Vec::new();
    let ran = program(&bed, test, on_line, &mut output);
    let log = bed.guest.directory().join("output.log");
    // The lines that matter are in the result.
    let _ = fs::write(log, output.join("\n"));
    let (cases, whole) = ktap::parse(test.name, &output);
    found.cases.extend(cases);
    let verdict = ran?.fault(&found.cases, whole);
    found.cases.extend(verdict.as_deref().map(failed));
    if let Err(Error::KernelComplained { findings, .. }) = bed.guest.check_log() {
        found.cases.extend(findings.first().map(log_case));
        return Ok(());
    }
    bed.finish()?;
    Ok(())
}

/// Lets the peer bind a port at once that a connection had before. The tests draw ports at random where
/// the NIC under test is, and the peer's programs bind the same ones: with one that was drawn before
/// in TIME_WAIT they would fail. (Orphaned sockets do not stay in FIN_WAIT2 either: a segment
/// that arrives later is answered with a reset.)
fn set_ports(bed: &Testbed, test: Test) -> cases::Result<()> {
    const NO_TIME_WAIT: &str = "/proc/sys/net/ipv4/tcp_max_tw_buckets";
    const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
    bed.guest
        .call(WriteFile::new(Ns::Peer, NO_TIME_WAIT, "0"))?;
    match test.ports {
        Some(range) => bed.write_file(RANGE, range),
        None => Ok(()),
    }
}

/// Has the peer send through the NIC under test what is for [`PREFIX`].
fn add_route(bed: &Testbed) -> cases::Result<()> {
    let via = bed.local.address(Family::V6);
    let words = format!("/usr/sbin/ip -netns {PEER} -6 route add {PREFIX} via {via}");
    let command = words.split(' ').map(str::to_owned).collect();
    let mut job = bed
        .guest
        .start(program_in(bed, "/".to_owned(), command, false))?;
    let mut output = String::new();
    while !job.ended() {
        if let Some(Event::Output { bytes, .. }) = job.next_event(Duration::from_secs(1))? {
            output += &String::from_utf8_lossy(&bytes.0);
        }
    }
    match job.join()? {
        ProgramReport::Exited { status: 0 } => Ok(()),
        report => Err(CaseError::new(format!("`{words}`: {report:?}: {output}"))),
    }
}

/// A program of the image.
fn program_in(bed: &Testbed, directory: String, command: Vec<String>, ipv4: bool) -> Program {
    Program {
        ns: Ns::Local,
        root: ROOT.to_owned(),
        directory,
        command,
        environment: environment(bed, ipv4),
        user: None,
        streams: Streams::Merged,
    }
}

/// How a test ended.
struct Ended {
    report: ProgramReport,
    /// Why it was ended, when it did not end by itself.
    hung: Option<String>,
}

impl Ended {
    /// What is wrong with how it ended that none of its sub-cases says. `whole`: it reported as many
    /// as it planned.
    fn fault(&self, cases: &[Case], whole: bool) -> Option<String> {
        if let Some(hung) = &self.hung {
            return Some(hung.clone());
        }
        if cases.iter().any(|case| case.verdict == Verdict::Fail) {
            return None;
        }
        // A test that is skipped as a whole may exit with KSFT_SKIP
        // (tools/testing/selftests/kselftest.h).
        let skipped = cases.iter().all(|case| case.verdict == Verdict::Skip);
        match &self.report {
            report if !whole => Some(format!("it did less than it planned: {report:?}")),
            ProgramReport::Exited { status: 0 } => None,
            ProgramReport::Exited { status: SKIPPED } if skipped => None,
            report => Some(format!("no sub-case failed, but the test did: {report:?}")),
        }
    }
}

fn program(
    bed: &Testbed,
    test: Test,
    on_line: &mut dyn FnMut(&str),
    output: &mut Vec<String>,
) -> cases::Result<Ended> {
    let (interpreter, suffix) = test.language.interpreter();
    let folder = format!("{SOURCE}/{SELFTESTS}/{}", test.folder);
    let command = vec![interpreter.to_owned(), format!("./{}{suffix}", test.name)];
    let mut job = bed
        .guest
        .start(program_in(bed, folder, command, test.ipv4))?;
    let mut lines = Lines::default();
    let start = Instant::now();
    let mut heard = start;
    let mut hung = None;
    let mut told = 0;
    let mut limit = SILENCE;
    while !job.ended() {
        match job.next_event(Duration::from_secs(1))? {
            Some(Event::Output { bytes, .. }) => {
                for text in lines.push(&bytes.0) {
                    on_line(&text);
                    output.push(text);
                }
                if hung.is_none() {
                    heard = Instant::now();
                }
            }
            _ if heard.elapsed() < limit && start.elapsed() < PATIENCE => {}
            _ if told == 0 => {
                hung = Some(format!("hung: ended after {} s", start.elapsed().as_secs()));
                (told, heard, limit) = (1, Instant::now(), GRACE);
                // It may have ended meanwhile.
                let _ = job.tell(Command::Stop);
            }
            _ if told == 1 && heard.elapsed() >= limit => {
                (told, heard) = (2, Instant::now());
                let _ = job.tell(Command::Kill);
            }
            _ if told == 2 && heard.elapsed() >= limit => {
                return Err(CaseError::new("it hung and could not be killed"));
            }
            _ => {}
        }
    }
    output.extend(lines.rest());
    let report = job.join()?;
    Ok(Ended { report, hung })
}

/// What drivers/net/README.rst of the selftests wants, and what a shell would have.
fn environment(bed: &Testbed, ipv4: bool) -> BTreeMap<String, String> {
    let address = |station: cases::Station, family| station.address(family).to_string();
    let mut environment: BTreeMap<_, _> = [
        ("NETIF", bed.local.name()),
        ("LOCAL_V4", address(bed.local, Family::V4)),
        ("LOCAL_V6", address(bed.local, Family::V6)),
        ("REMOTE_V4", address(bed.peer, Family::V4)),
        ("REMOTE_V6", address(bed.peer, Family::V6)),
        ("REMOTE_TYPE", "netns".to_owned()),
        ("REMOTE_ARGS", PEER.to_owned()),
        ("LOCAL_PREFIX_V6", PREFIX.to_owned()),
        ("PATH", "/usr/sbin:/usr/bin".to_owned()),
        ("HOME", "/root".to_owned()),
        ("LC_ALL", "C.UTF-8".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if ipv4 {
        environment.retain(|name, _| !name.ends_with("_V6"));
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(verdict: Verdict) -> Case {
        Case {
            name: "v4".to_owned(),
            verdict,
            reason: String::new(),
        }
    }

    fn exited(status: i32) -> Ended {
        Ended {
            report: ProgramReport::Exited { status },
            hung: None,
        }
    }

    #[test]
    fn a_test_that_exits_with_an_error_fails_though_it_reported_all_that_it_planned() {
        let passed = [case(Verdict::Pass), case(Verdict::Skip)];
        assert_eq!(exited(0).fault(&passed, true), None);
        for status in [1, SKIPPED] {
            let fault = exited(status).fault(&passed, true).unwrap();
            assert!(fault.contains(&status.to_string()), "{fault}");
        }
        assert_eq!(exited(SKIPPED).fault(&[case(Verdict::Skip)], true), None);
        assert_eq!(exited(1).fault(&[case(Verdict::Fail)], true), None);
        assert!(exited(0).fault(&passed, false).is_some());
    }
}
