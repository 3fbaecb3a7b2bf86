// SPDX-License-Identifier: MIT OR Apache-2.0

//! A shell script of the lab's own in the guest.

use anyhow::{Result, bail};
use cases::Testbed;
use protocol::program::{ProgramReport, Stream, Streams};
use protocol::{Event, Ns, Program};

use super::environment;
use super::setup::ROOT;

/// Runs a script as root, and returns what it prints.
///
/// # Errors
///
/// With what it says on standard error, when it fails.
pub(super) fn run(bed: &Testbed, script: &str, arguments: &[&str]) -> Result<Vec<u8>> {
    let mut command = vec!["/bin/sh", "-c", script, "nobounce"];
    command.extend(arguments);
    let mut job = bed.guest.start(Program {
        ns: Ns::Local,
        root: ROOT.to_owned(),
        directory: "/".to_owned(),
        command: command.into_iter().map(str::to_owned).collect(),
        environment: environment::of_user(),
        user: None,
        streams: Streams::Pipes,
    })?;
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    while !job.ended() {
        match job.next_event(bed.guest.call_timeout())? {
            Some(Event::Output {
                stream: Stream::Output,
                bytes,
            }) => output.extend(bytes.0),
            Some(Event::Output { bytes, .. }) => errors.extend(bytes.0),
            _ => {}
        }
    }
    match job.join()? {
        ProgramReport::Exited { status: 0 } => Ok(output),
        _ => bail!("{}", String::from_utf8_lossy(&errors).trim_end()),
    }
}
