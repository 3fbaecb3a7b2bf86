// SPDX-License-Identifier: MIT OR Apache-2.0

//! Wires between two machines.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    sync::Arc,
};

use crate::End;

/// One end of each wire of a machine: the other ends are another machine's.
///
/// A datagram is a frame. None is lost but by a link ([`Machine::link`](crate::Machine::link)): a QEMU whose socket is
/// full waits, as do devices of ours.
#[derive(Debug, Clone)]
pub struct Cables {
    end: End,
    sockets: Vec<Arc<OwnedFd>>,
}

impl Cables {
    /// Both ends of so many wires: the local one first.
    ///
    /// # Errors
    ///
    /// When there are no more file descriptors.
    pub fn lay(wires: u8) -> io::Result<[Self; 2]> {
        let [mut local, mut peer] = End::BOTH.map(|end| Self {
            end,
            sockets: Vec::new(),
        });
        for _ in 0..wires {
            let (near, far) = UnixDatagram::pair()?;
            local.sockets.push(Arc::new(near.into()));
            peer.sockets.push(Arc::new(far.into()));
        }
        Ok([local, peer])
    }

    /// Which end is this machine's.
    #[must_use]
    pub fn end(&self) -> End {
        self.end
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.sockets.len()
    }

    /// Descriptors for whoever has the NICs, one for each wire.
    pub(crate) fn share(&self) -> io::Result<Vec<OwnedFd>> {
        self.sockets
            .iter()
            .map(|socket| socket.try_clone())
            .collect()
    }
}
