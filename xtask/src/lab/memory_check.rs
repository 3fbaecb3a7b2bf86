// SPDX-License-Identifier: MIT OR Apache-2.0

//! The proof from outside for a program of the user's: what it receives comes out of the
//! accelerator's memory, where the host put it, so that all of it that is found in the guest's RAM was
//! left there on its way.

use anyhow::{Context, Result};
use cases::{Family, Stream, Testbed};
use indicatif::BinaryBytes;
use protocol::memory::PhysicalRange;
use protocol::{Command, Ns};
use vm::traces::{self, Search, Trace};

use super::side::Side;
use crate::failure;
use crate::ui::Step;

/// A payload that was sent to the user's program.
pub(super) struct Check {
    search: Search,
    port: u16,
    bytes: u64,
    /// Whether the program's side has acknowledged all of it.
    delivered: bool,
    in_ram: u64,
    in_accelerator: u64,
}

/// Sends `bytes` to the program as soon as it listens, and looks where they are when it has
/// acknowledged them. None if it ended before it listened.
pub(super) fn send(
    bed: &Testbed,
    side: &Side<'_>,
    program: &Side<'_>,
    bytes: u64,
) -> Result<Option<Check>> {
    let Some(ports) = side.await_server(program, Ns::Local)? else {
        return Ok(None);
    };
    let port = *ports.first().context("it listens on no port")?;
    let stream = Stream {
        port,
        ..bed
            .stream(bed.peer, bed.local, Family::V4)
            .in_accelerator()
            .unpredictable()
    };
    let (mut source, ranges) = stream.source_ready(bed, bytes).map_err(failure::of_case)?;
    source.tell(Command::Go)?;
    source.wait_end()?;
    // Its memory is still there, and so is the program.
    let search = Search::new(stream.payload(bytes));
    let in_ram = traces::bytes(&traces::find(&search, bed.guest.ram())?);
    let found = traces::find(&search, bed.guest.accelerator_memory()?)?;
    let in_accelerator = traces::bytes(&elsewhere(found, &ranges));
    let report = source.join()?;
    Ok(Some(Check {
        search,
        port,
        bytes,
        delivered: report.delivered,
        in_ram,
        in_accelerator,
    }))
}

impl Check {
    /// Looks again, after the program's end, and says what was found.
    pub(super) fn report(&self, bed: &Testbed) -> Result<String> {
        let step = Step::begin("memory-check", "looking for the payload in the guest's RAM");
        let afterwards = traces::bytes(&traces::find(&self.search, bed.guest.ram())?);
        drop(step);
        let in_ram = self.in_ram.max(afterwards);
        let bytes = BinaryBytes(self.bytes);
        let delivered = match self.delivered {
            true => "all acknowledged",
            false => "not all acknowledged",
        };
        Ok(format!(
            "memory-check: {bytes} sent to port {}, {delivered}; in the guest's RAM: {}; in the \
             accelerator's memory, where it was received: {}",
            self.port,
            BinaryBytes(in_ram),
            BinaryBytes(self.in_accelerator),
        ))
    }
}

/// Those that are in none of `ranges`.
fn elsewhere(mut found: Vec<Trace>, ranges: &[PhysicalRange]) -> Vec<Trace> {
    found.retain(|trace| {
        let within = |range: &PhysicalRange| {
            (range.address..range.address + range.len).contains(&trace.address)
        };
        !ranges.iter().any(within)
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_where_it_was_sent_from_was_not_received() {
        let trace = |address| Trace {
            address,
            payload_offset: 0,
            len: 64,
        };
        let source = [PhysicalRange {
            offset: 0,
            address: 0x1000,
            len: 0x1000,
        }];
        let found = [0xfc0, 0x1000, 0x1fff, 0x2000].map(trace).to_vec();
        let left: Vec<_> = elsewhere(found, &source)
            .iter()
            .map(|trace| trace.address)
            .collect();
        assert_eq!(left, [0xfc0, 0x2000]);
    }
}
