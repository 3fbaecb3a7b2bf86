// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the owner of device memory sees, and shall see.

use std::fmt::{self, Display, Formatter};

use crate::{Cell, Event, State};

/// What the owner sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All payload arrives, in the dma-buf or out of it.
    GoesOn,
    /// All payload arrives, from then on in host memory.
    InHostMemory,
    /// Who asked for the event is told this errno; all goes on.
    Refused(i32),
    /// The owner is told this errno.
    Error(i32),
    /// The owner ends, as it was told.
    Ends,
    /// There is no owner any more.
    Killed,
    /// Nothing comes, and nobody is told: TCP looks for itself whether its peer lives.
    Silence,
    /// None of these.
    Other(String),
}

const EINVAL: i32 = 22;

/// What the owner shall see.
///
/// The kernel's part is in net/core/devmem.c and io_uring/zcrx.c: a binding belongs to a netlink
/// socket, and holds the dma-buf; a queue's provider survives whatever rings are replaced by; what
/// would take a bound queue its conditions is refused.
pub(crate) fn expected(event: Event, state: State) -> Outcome {
    use Event::*;
    use Outcome::*;
    use State::*;

    match (event, state) {
        // Memory of a ring is as old as the ring.
        (CloseBinding, Zcrx) => Ends,
        // Its next send names a binding that is unknown (`net_devmem_get_binding()`).
        (CloseBinding, Sending) => Error(EINVAL),
        (CloseBinding, _) => InHostMemory,
        (KillOwner, _) => Killed,
        (CloseDmaBuf, _) => GoesOn,

        (LinkDown | InterfaceDown, _) => GoesOn,

        // The core refuses to turn it off while a queue is bound (`ethnl_set_rings()`).
        (SplitOff, Sending) => GoesOn,
        (SplitOff, _) => Refused(EINVAL),
        // Nor to take it away (`ethtool_check_max_channel()`).
        (ChannelsFewest, Sending) => GoesOn,
        (ChannelsFewest, _) => Refused(EINVAL),
        (ChannelsFewer | RingSizes | Mtu | QueueRestart, _) => GoesOn,

        (Unload | Removal | SurpriseRemoval, _) => Silence,
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::GoesOn => f.pad("goes on"),
            Self::InHostMemory => f.pad("in host memory"),
            Self::Refused(errno) => f.pad(&format!("refused: {}", name(*errno))),
            Self::Error(errno) => f.pad(&format!("error: {}", name(*errno))),
            Self::Ends => f.pad("ends"),
            Self::Killed => f.pad("killed"),
            Self::Silence => f.pad("silence"),
            Self::Other(what) => f.pad(what),
        }
    }
}

/// An errno's name.
fn name(errno: i32) -> String {
    match errno {
        EINVAL => "EINVAL".to_owned(),
        other => format!("errno {other}"),
    }
}

/// The matrix: a row for each event, a column for each state.
pub(crate) fn matrix(columns: &[Vec<Cell>]) -> String {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(State::ALL.iter().map(ToString::to_string));
    for (index, event) in Event::ALL.into_iter().enumerate() {
        let cell = |column: &Vec<Cell>| match column.get(index) {
            Some(Cell::AsExpected(outcome)) => outcome.to_string(),
            Some(Cell::Otherwise(_)) => "FAILED".to_owned(),
            None => String::new(),
        };
        let mut row = vec![event.to_string()];
        row.extend(columns.iter().map(cell));
        rows.push(row);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate();
        let cells = cells.map(|(i, cell)| format!("{cell:<0$}", width(i).unwrap_or_default()));
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut lines: Vec<_> = rows.iter().map(line).collect();
    lines.insert(1, format!("|{}", "---|".repeat(rows[0].len())));
    lines.join("\n")
}
