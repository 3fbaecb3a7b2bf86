// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the owner of device memory sees, and must see.

use std::fmt::{self, Display, Formatter};

use libc::EINVAL;

use crate::{Event, State};

/// What the owner sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All payload arrives, in the dma-buf or out of it.
    GoesOn,
    /// All payload arrives, from then on in host memory.
    InHostMemory,
    /// The event is refused with this errno; all goes on.
    Refused(i32),
    /// The owner gets this errno.
    Error(i32),
    /// The owner ends, as it was told to.
    Ends,
    /// There is no owner any more.
    Killed,
    /// Nothing arrives, and no one gets an error: TCP has to probe its peer.
    Silence,
    /// None of these.
    Other(String),
}

/// What the owner must see.
///
/// The kernel's part is in net/core/devmem.c and io_uring/zcrx.c: a binding belongs to a netlink
/// socket, and holds the dma-buf; a queue's memory provider survives a change of rings; changes
/// that would break the preconditions of a bound queue are refused.
pub(crate) fn expected(event: Event, state: State) -> Outcome {
    use Event::*;
    use Outcome::*;
    use State::*;

    match (event, state) {
        // A ring's memory lives only as long as the ring.
        (CloseBinding, Zcrx) => Ends,
        // Its next send names an unknown binding (`net_devmem_get_binding()`).
        (CloseBinding, Sending) => Error(EINVAL),
        (CloseBinding, _) => InHostMemory,
        (KillOwner, _) => Killed,
        (CloseDmaBuf, _) => GoesOn,

        (LinkDown | InterfaceDown, _) => GoesOn,

        // The core refuses to turn it off while a queue is bound (`ethnl_set_rings()`).
        (SplitOff, Sending) => GoesOn,
        (SplitOff, _) => Refused(EINVAL),
        // It also refuses to remove a bound queue (`ethtool_check_max_channel()`).
        (ChannelsFewest, Sending) => GoesOn,
        (ChannelsFewest, _) => Refused(EINVAL),
        (ChannelsFewer | RingSizes | Mtu | QueueRestart, _) => GoesOn,

        (Unload | Removal | SurpriseRemoval, _) => Silence,
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::GoesOn => f.write_str("goes on"),
            Self::InHostMemory => f.write_str("in host memory"),
            Self::Refused(errno) => write!(f, "refused: {}", name(*errno)),
            Self::Error(errno) => write!(f, "error: {}", name(*errno)),
            Self::Ends => f.write_str("ends"),
            Self::Killed => f.write_str("killed"),
            Self::Silence => f.write_str("silence"),
            Self::Other(what) => f.write_str(what),
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
