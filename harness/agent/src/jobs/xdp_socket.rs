// SPDX-License-Identifier: MIT OR Apache-2.0

//! An XDP socket that echoes what it receives.

use std::time::{Duration, Instant};

use anyhow::Result;
use protocol::{JobId, XdpSocket as Spec, xsk::XdpSocketReport};
use rustix::{
    event::{PollFd, PollFlags, poll},
    net::xdp::SocketAddrXdpFlags,
};

use super::{job::Ready, switch::Switch, tcp::LOOK};
use crate::{
    netns,
    rtnetlink::index_of,
    xdp::{self, Binding, XdpSocket},
};

/// How long the last completions may take, after everything else is done.
const LAST: Duration = Duration::from_secs(30);
/// Bytes of a frame that no device sends.
const RUNT: u32 = 10;

pub(super) fn set_up(_id: JobId, spec: Spec) -> Result<Ready> {
    let socket = netns::within(spec.ns, || {
        let mut flags = match spec.copy {
            true => SocketAddrXdpFlags::XDP_COPY,
            false => SocketAddrXdpFlags::XDP_ZEROCOPY,
        };
        flags.set(SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP, spec.need_wakeup);
        XdpSocket::bind(&Binding {
            interface: index_of(&spec.interface)?,
            queue: spec.queue,
            flags,
            chunk: spec.chunk,
            chunks: spec.chunks,
        })
    })?;
    let zero_copy = socket.zero_copy()?;
    xdp::offer(spec.ns, &spec.interface, spec.queue, &socket)?;
    // Without buffers the queue drops arriving frames.
    let mut echo = Echo::new(socket, &spec);
    echo.turn();

    let switch = Switch::new("XdpSocket");
    Ok(Ready::new::<Spec, _>(switch, move |switch| {
        while !switch.finishing() {
            if !echo.turn() {
                echo.wait();
            }
        }
        let end = Instant::now() + LAST;
        while echo.report.completed < echo.report.sent && Instant::now() < end {
            if !echo.turn() {
                echo.wait();
            }
        }
        xdp::withdraw(spec.ns, &spec.interface, spec.queue);
        XdpSocketReport {
            zero_copy,
            ..echo.report
        }
    }))
}

/// The owner of a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Us,
    Receive,
    Send,
}

struct Echo {
    socket: XdpSocket,
    owners: Vec<Owner>,
    chunk: u64,
    need_wakeup: bool,
    runts: bool,
    report: XdpSocketReport,
}

impl Echo {
    fn new(socket: XdpSocket, spec: &Spec) -> Self {
        Self {
            socket,
            owners: vec![Owner::Us; spec.chunks as usize],
            chunk: spec.chunk.into(),
            need_wakeup: spec.need_wakeup,
            runts: spec.runts,
            report: XdpSocketReport::default(),
        }
    }

    /// Notes that a chunk changes hands.
    fn pass(&mut self, address: u64, from: Owner, to: Owner) {
        let owner = self.owners.get_mut((address / self.chunk) as usize);
        match owner {
            Some(owner) if *owner == from => *owner = to,
            _ => self.report.misplaced += 1,
        }
    }

    /// Moves on all chunks that it can; false if there were none except for the fill ring.
    fn turn(&mut self) -> bool {
        let mut moved = false;
        while let Some(address) = self.socket.complete() {
            self.pass(address, Owner::Send, Owner::Us);
            self.report.completed += 1;
            moved = true;
        }
        let mut sends = false;
        while let Some((address, len)) = self.socket.receive() {
            self.pass(address, Owner::Receive, Owner::Us);
            self.report.received += 1;
            moved = true;
            if self.socket.turn(address).is_ok() && self.socket.send(address, len) {
                self.pass(address, Owner::Us, Owner::Send);
                self.report.sent += 1;
                sends = true;
            }
            if self.runts {
                sends |= self.send_runt();
            }
        }
        self.fill();
        if sends || self.report.completed < self.report.sent {
            // An interface that cannot be woken is down; a later turn tries again.
            let _ = self.socket.kick(self.need_wakeup);
        }
        moved
    }

    /// Sends a frame that is too short, from a chunk that holds no frame.
    fn send_runt(&mut self) -> bool {
        let Some(free) = self.owners.iter().position(|owner| *owner == Owner::Us) else {
            return false;
        };
        let address = free as u64 * self.chunk;
        let sent = self.socket.send(address, RUNT);
        if sent {
            self.pass(address, Owner::Us, Owner::Send);
            self.report.sent += 1;
        }
        sent
    }

    /// Fills the driver's ring with chunks; some are spared for runts.
    fn fill(&mut self) {
        let spare = if self.runts { self.owners.len() / 4 } else { 0 };
        let given = self.owners.iter().filter(|owner| **owner == Owner::Receive);
        let mut room = (self.owners.len() - spare).saturating_sub(given.count());
        for index in 0..self.owners.len() {
            if room == 0 {
                return;
            }
            if self.owners[index] == Owner::Us {
                let address = index as u64 * self.chunk;
                if !self.socket.fill(address) {
                    return;
                }
                self.owners[index] = Owner::Receive;
                room -= 1;
            }
        }
    }

    /// Waits for frames, and wakes the driver if it waits for chunks.
    fn wait(&self) {
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        let _ = poll(&mut polled, Some(&LOOK));
    }
}
