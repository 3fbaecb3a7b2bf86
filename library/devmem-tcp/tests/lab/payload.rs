// SPDX-License-Identifier: MIT OR Apache-2.0

//! Payload that says which stream it is of, and where in it.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::thread::{self, JoinHandle};

use devmem_tcp::memory::ReadAt;
use devmem_tcp::zcrx::{End, Event, Fragment, Receiver, UserMemory};

/// The bytes of a stream from `position` on.
fn fill(seed: u64, position: u64, bytes: &mut [u8]) {
    for (byte, position) in bytes.iter_mut().zip(position..) {
        let mut word = (seed << 48) ^ (position >> 3);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        *byte = (word ^ (word >> 31)).to_le_bytes()[position as usize & 7];
    }
}

/// Sends a stream, and ends it.
pub(crate) fn send(mut to: TcpStream, seed: u64, len: usize) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        for position in (0..len).step_by(bytes.len()) {
            let piece = bytes.len().min(len - position);
            fill(seed, position as u64, &mut bytes[..piece]);
            to.write_all(&bytes[..piece]).expect("send");
        }
        to.shutdown(Shutdown::Write).expect("shut down");
    })
}

/// What has come of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    seed: u64,
    pub(crate) bytes: u64,
    pub(crate) fragments: u64,
}

impl Stream {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            bytes: 0,
            fragments: 0,
        }
    }

    /// Takes in the next fragment, which is in `memory`.
    #[track_caller]
    pub(crate) fn take(&mut self, fragment: &Fragment, memory: &impl ReadAt) {
        let mut came = vec![0; fragment.len() as usize];
        fragment.read(memory, 0, &mut came).expect("in the area");
        let mut sent = came.clone();
        fill(self.seed, self.bytes, &mut sent);
        assert!(came == sent, "other bytes in {fragment:?} after {self:?}");
        self.bytes += u64::from(fragment.len());
        self.fragments += 1;
    }

    /// Receives to the end of the stream, the receiver's only one. Fragments are held; `other` gets all other events,
    /// and may recycle them.
    pub(crate) fn receive(
        &mut self,
        receiver: &mut Receiver,
        memory: &UserMemory,
        mut other: impl FnMut(Event, &mut Receiver, &mut Vec<Fragment>),
    ) {
        let (mut held, mut events) = (Vec::new(), Vec::new());
        loop {
            receiver.wait(None, &mut events).expect("events");
            for event in events.drain(..) {
                match event {
                    Event::Fragment { fragment, .. } => {
                        self.take(&fragment, memory);
                        held.push(fragment);
                    }
                    Event::Ended {
                        end: End::Closed, ..
                    } => return,
                    event => other(event, receiver, &mut held),
                }
            }
        }
    }
}
