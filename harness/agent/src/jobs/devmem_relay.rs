// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream into a dma-buf and forwards it from the same memory.

use std::{
    collections::BTreeMap,
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use devmem_tcp::{
    SendError,
    rx::{Capacity, Fragment, Received, Recycler},
    tx::Sender,
};
use protocol::{DevmemRelay, JobId, devmem::DevmemRelayReport};
use rustix::event::{PollFd, PollFlags, poll};

use super::{
    binding::{bind, bind_for_sending},
    job::Ready,
    memory, receive,
    report::Meter,
    switch::{Holding, Switch},
    tcp,
};

pub(super) fn set_up(id: JobId, spec: DevmemRelay) -> Result<Ready> {
    let buffer = (spec.dmabuf_bytes / 4) as usize;
    let dmabuf = memory::allocate(spec.memory, spec.dmabuf_bytes)?;
    let listener = tcp::listen(spec.ns, spec.listen, Some(buffer))?;
    let binding = bind(spec.ns, &spec.interface, &spec.queues, &dmabuf, None)?;
    let onward = tcp::connect(spec.ns, spec.bind, spec.connect)?;
    let tx_binding = bind_for_sending(spec.ns, &spec.interface, &dmabuf)?;
    let sender = tcp::sender(&onward, tx_binding)?;
    memory::report_place(id, &dmabuf)?;
    let switch = Switch::watching("DevmemRelay", &listener);
    switch.watch(&onward);
    let held = (dmabuf, binding);
    let holding = Arc::new(Holding { switch, held });
    Ok(Ready::new::<DevmemRelay, _>(holding, move |holding| {
        let relay = Relay {
            sender,
            held: Held::default(),
            // Half for the receiver's window, a quarter for what is being sent; the rest is slack,
            // because a fragment occupies whole pages.
            most_held: spec.dmabuf_bytes / 4,
            recycler: Recycler::new(),
            switch: &holding.switch,
            meter: Meter::new(id),
            report: DevmemRelayReport::default(),
        };
        relay.run(id, listener, &onward)
    }))
}

/// Pieces of the dma-buf that were received and are being sent.
///
/// The relay owns a fragment from its receipt to the return of its token, so no two pieces overlap.
#[derive(Default)]
struct Held {
    /// By offset in the dma-buf.
    pieces: BTreeMap<u64, Piece>,
    bytes: u64,
}

/// Fragments that are contiguous in the dma-buf as in the stream: one send.
struct Piece {
    len: u64,
    /// Bytes whose sends are not complete.
    open: u64,
    fragments: Vec<Fragment>,
}

impl Held {
    /// Adds fragments; returns the sends that they make up, in stream order.
    fn take_in(&mut self, fragments: impl IntoIterator<Item = Fragment>) -> Vec<(u64, u64)> {
        let mut sends: Vec<(u64, u64)> = Vec::new();
        for fragment in fragments {
            let (offset, len) = (fragment.offset(), u64::from(fragment.len()));
            self.bytes += len;
            match sends.last_mut() {
                Some((start, so_far)) if *start + *so_far == offset => {
                    *so_far += len;
                    if let Some(piece) = self.pieces.get_mut(start) {
                        piece.len += len;
                        piece.open += len;
                        piece.fragments.push(fragment);
                    }
                }
                _ => {
                    sends.push((offset, len));
                    let piece = Piece {
                        len,
                        open: len,
                        fragments: vec![fragment],
                    };
                    self.pieces.insert(offset, piece);
                }
            }
        }
        sends
    }

    /// Notes that `len` bytes at `offset` are sent; returns the fragments of the piece once all
    /// of it is.
    fn completed(&mut self, offset: u64, len: u64) -> Option<Vec<Fragment>> {
        let (&start, piece) = self.pieces.range_mut(..=offset).next_back()?;
        piece.open = piece.open.saturating_sub(len);
        if piece.open > 0 {
            return None;
        }
        let piece = self.pieces.remove(&start)?;
        self.bytes -= piece.len;
        Some(piece.fragments)
    }

    fn tokens(&self) -> u64 {
        let all = self.pieces.values();
        all.map(|piece| piece.fragments.len() as u64).sum()
    }
}

struct Relay<'a> {
    sender: Sender<TcpStream>,
    held: Held,
    most_held: u64,
    recycler: Recycler,
    switch: &'a Switch,
    meter: Meter,
    report: DevmemRelayReport,
}

impl Relay<'_> {
    fn run(
        mut self,
        id: JobId,
        listener: Arc<TcpListener>,
        onward: &TcpStream,
    ) -> DevmemRelayReport {
        let result = tcp::accept(listener, self.switch, id)
            .and_then(|incoming| self.pass_on(&incoming, onward));
        self.report.error = self.switch.failure(result);
        self.report.tokens_held = self.held.tokens();
        self.report
    }

    /// Receives and sends until the stream ends and everything is returned.
    fn pass_on(&mut self, incoming: &TcpStream, onward: &TcpStream) -> Result<()> {
        receive::devmem(incoming, Capacity::default(), |_, received| {
            self.send_on(received, incoming)?;
            self.wait_for_payload(incoming)
        })?;
        self.report.end_of_stream = !self.switch.stopped();
        self.report.delivered = tcp::deliver(onward, self.switch)?;
        while self.sender.in_flight() > 0 && !self.switch.stopped() {
            self.wait(None)?;
            self.return_completed(incoming)?;
        }
        Ok(())
    }

    /// Waits until there is payload, and what is held leaves room for it.
    fn wait_for_payload(&mut self, incoming: &TcpStream) -> Result<()> {
        while !self.switch.stopped() {
            self.return_completed(incoming)?;
            if self.held.bytes > self.most_held {
                self.wait(None)?;
            } else if self.wait(Some(incoming))? {
                break;
            }
        }
        Ok(())
    }

    /// Sends received payload from where it is.
    fn send_on(&mut self, received: &mut Received, incoming: &TcpStream) -> Result<()> {
        self.report.received += received.bytes();
        self.report.linear_bytes += received.linear.len() as u64;
        ensure!(
            received.linear.is_empty(),
            "{} bytes came outside the dma-buf and cannot be sent from it",
            received.linear.len()
        );
        self.report.fragments += received.fragments.len() as u64;
        self.meter.passed(self.report.received);
        for (offset, len) in self.held.take_in(received.fragments.drain(..)) {
            let mut sent = 0;
            while sent < len && !self.switch.stopped() {
                match self.sender.send(offset + sent, (len - sent) as usize) {
                    Ok(accepted) => {
                        sent += accepted as u64;
                        self.report.sends += 1;
                        self.report.sent += accepted as u64;
                    }
                    Err(SendError::TooManyInFlight { in_flight, .. }) if in_flight > 0 => {
                        self.wait(None)?;
                        self.return_completed(incoming)?;
                    }
                    Err(error) => return Err(error).context("sending"),
                }
            }
        }
        Ok(())
    }

    /// Recycles payload that was sent.
    fn return_completed(&mut self, incoming: &TcpStream) -> Result<()> {
        let mut recycled = Vec::new();
        for completion in self.sender.completions().context("reading completions")? {
            self.report.completions += 1;
            self.report.copied += u64::from(completion.copied);
            let done = self
                .held
                .completed(completion.offset, completion.len as u64);
            recycled.extend(done.unwrap_or_default());
        }
        Ok(self.recycler.recycle(incoming, recycled)?)
    }

    /// Waits a little for completions, and for payload if asked to; says whether there is payload.
    fn wait(&self, incoming: Option<&TcpStream>) -> Result<bool> {
        // A non-empty error queue is reported as POLLERR, whatever events are requested.
        let completions = PollFd::new(self.sender.socket(), PollFlags::empty());
        let mut sockets = vec![completions];
        sockets.extend(incoming.map(|socket| PollFd::new(socket, PollFlags::IN)));
        poll(&mut sockets, Some(&tcp::LOOK)).context("waiting for payload and completions")?;
        Ok(sockets
            .get(1)
            .is_some_and(|socket| !socket.revents().is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use devmem_tcp::rx::RawFragment;

    use super::*;

    fn tokens(fragments: Option<Vec<Fragment>>) -> Option<Vec<u32>> {
        let raw = |fragment: Fragment| fragment.into_raw().token;
        fragments.map(|fragments| fragments.into_iter().map(raw).collect())
    }

    fn fragment(offset: u64, len: u32, token: u32) -> Fragment {
        Fragment::from_raw(RawFragment {
            offset,
            len,
            token,
            dmabuf_id: 1,
            socket: 1,
        })
    }

    #[test]
    fn fragments_that_follow_each_other_are_one_send_and_return_together() {
        let mut held = Held::default();
        let sends = held.take_in([
            fragment(8192, 4096, 1),
            fragment(12288, 756, 2),
            fragment(0, 4096, 3),
        ]);
        assert_eq!(sends, [(8192, 4852), (0, 4096)]);
        assert_eq!((held.bytes, held.tokens()), (8948, 3));

        // The kernel may take a send in parts, and complete them in any order.
        assert_eq!(tokens(held.completed(12000, 1044)), None);
        assert_eq!(tokens(held.completed(0, 4096)), Some(vec![3]));
        assert_eq!(tokens(held.completed(8192, 3808)), Some(vec![1, 2]));
        assert_eq!((held.bytes, held.tokens()), (0, 0));
    }

    #[test]
    fn a_fragment_before_another_in_the_dma_buf_is_a_send_of_its_own() {
        let mut held = Held::default();
        let sends = held.take_in([fragment(4096, 4096, 1), fragment(0, 4096, 2)]);
        assert_eq!(sends, [(4096, 4096), (0, 4096)]);
        assert_eq!(tokens(held.completed(4096, 4096)), Some(vec![1]));
    }
}
