// SPDX-License-Identifier: MIT OR Apache-2.0

//! One plan at a time steers to a queue.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::error::{RequestError, SteeringError};
use crate::interface::Interface;

/// Queues that nobody else steers to. Names of abstract sockets belong to a network namespace, as the indices
/// of interfaces do, and the kernel frees them with the process.
#[derive(Debug)]
pub(super) struct Claim {
    _names: Vec<UnixDatagram>,
}

impl Claim {
    pub(super) fn of(interface: Interface, queues: &[u32]) -> Result<Self, SteeringError> {
        let queues: BTreeSet<_> = queues.iter().collect();
        let names = queues.into_iter().map(|&queue| {
            let name = format!("devmem-tcp/steering/{}/{queue}", interface.index());
            let bound = SocketAddr::from_abstract_name(name)
                .and_then(|name| UnixDatagram::bind_addr(&name));
            bound.map_err(|error| match error.kind() {
                ErrorKind::AddrInUse => SteeringError::QueueClaimed {
                    interface: interface.label(),
                    queue,
                },
                _ => RequestError::io("bind an abstract socket", error).into(),
            })
        });
        Ok(Self {
            _names: names.collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_claimed_once_until_the_claim_is_dropped() {
        // No other process claims those of an interface that nobody has.
        let interface = Interface::from_index(u32::MAX - std::process::id());
        let claim = |queues: &[u32]| Claim::of(interface, queues);
        let first = claim(&[3, 1, 3]).expect("free");
        let taken = claim(&[2, 1]);
        assert!(
            matches!(taken, Err(SteeringError::QueueClaimed { queue: 1, .. })),
            "{taken:?}"
        );
        claim(&[2]).expect("what failed left nothing");
        drop(first);
        claim(&[1]).expect("free again");
    }
}
