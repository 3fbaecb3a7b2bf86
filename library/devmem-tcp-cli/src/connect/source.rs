// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a flow sends next: pieces of the memory in turn.

use anyhow::{Result, ensure};
use payload::Payload;

use super::{Arguments, Budget};
use crate::flow::Run;
use crate::memory::Target;

/// Pieces of the memory in turn.
pub(super) struct Source<'a> {
    pub(super) memory: &'a Target,
    run: &'a Run,
    payload: Option<Payload>,
    budget: Budget,
    /// Bytes of a call, or of a request.
    piece: u64,
    sent: u64,
    place: u64,
}

/// A piece of the memory to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) len: usize,
}

impl<'a> Source<'a> {
    /// # Errors
    ///
    /// The memory or the budget has no room for a request.
    pub(super) fn new(
        mut budget: Budget,
        arguments: &Arguments,
        memory: &'a Target,
        run: &'a Run,
    ) -> Result<Self> {
        let room = memory.len() as u64;
        let piece = match arguments.rpc {
            Some(rpc) => {
                budget.of_whole(rpc.request)?;
                ensure!(
                    rpc.request <= room,
                    "a request of {} bytes does not fit into a flow's {room} bytes of memory: --size",
                    rpc.request
                );
                rpc.request
            }
            None => arguments.write.clamp(1, room),
        };
        Ok(Self {
            memory,
            run,
            payload: arguments.validate.map(Payload::new),
            budget,
            piece,
            sent: 0,
            place: 0,
        })
    }

    /// Whether the memory is filled anew for each piece, so that none may be in flight still.
    pub(super) fn is_filled(&self) -> bool {
        self.payload.is_some()
    }

    /// Whether the next piece is the first one of the memory again.
    pub(super) fn next_is_at_start(&self) -> bool {
        self.place + self.piece > self.memory.len() as u64
    }

    /// The next piece, filled if it is to be; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Piece>> {
        let len = self.budget.left(self.sent, self.piece);
        if len == 0 || self.run.stopped() {
            return Ok(None);
        }
        if self.next_is_at_start() {
            self.place = 0;
        }
        let piece = Piece {
            offset: self.place,
            len: len as usize,
        };
        if let Some(payload) = self.payload {
            let mut bytes = vec![0; piece.len];
            payload.fill(self.sent, &mut bytes);
            self.memory.write_at(piece.offset as usize, &bytes)?;
        }
        self.place += self.piece;
        self.sent += len;
        Ok(Some(piece))
    }
}
