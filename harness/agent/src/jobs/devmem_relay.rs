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
    interface::Interface,
    memory::Memory,
    netdev::{RxBinding, TxBinding},
    rx::{Capacity, Fragment, Received, Recycler},
    tx::Sender,
};
use protocol::{Command, DevmemRelay, Failure, JobId, devmem::DevmemRelayReport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    job::{Control, Ready},
    memory, receive,
    report::Meter,
    switch::Switch,
    tcp,
};
use crate::{failure, netns};

pub(super) fn set_up(id: JobId, spec: DevmemRelay) -> Result<Ready> {
    let buffer = (spec.dmabuf_bytes / 4) as usize;
    let dmabuf = memory::allocate(spec.memory, spec.dmabuf_bytes)?;
    let (listener, binding, sender, onward) = netns::within(spec.ns, || {
        let interface = Interface::by_name(&spec.interface)?;
        let listener = tcp::listen(spec.listen, Some(buffer))?;
        let queues = spec.queues.iter().copied();
        let binding = RxBinding::to(interface).queues(queues).bind(&dmabuf)?;
        let onward = tcp::connect(spec.bind, spec.connect)?;
        let own = onward.try_clone().context("duplicating the socket")?;
        let sender = Sender::new(own, TxBinding::to(interface).bind(&dmabuf)?)?;
        Ok((Arc::new(listener), binding, sender, Arc::new(onward)))
    })?;
    memory::report_place(id, &dmabuf)?;
    let switch = Switch::new("DevmemRelay");
    switch.watch(&listener);
    switch.watch(&onward);
    let control = Arc::new(Hold {
        _dmabuf: dmabuf,
        _binding: binding,
        switch: Arc::clone(&switch),
    });
    Ok(Ready::new::<DevmemRelay>(control, move || {
        let relay = Relay {
            sender,
            held: Held::default(),
            // Half for the receiver's window, a quarter for what is being sent; the rest is slack,
            // because a fragment occupies whole pages.
            most_held: spec.dmabuf_bytes / 4,
            recycler: Recycler::new(),
            switch: &switch,
            meter: Meter::new(id),
            report: DevmemRelayReport {
                received: 0,
                linear_bytes: 0,
                fragments: 0,
                sent: 0,
                sends: 0,
                completions: 0,
                copied: 0,
                tokens_held: 0,
                end_of_stream: false,
                delivered: false,
                error: None,
            },
        };
        relay.run(id, listener, &onward)
    }))
}

/// Lives until the job is joined: the host may still be reading.
struct Hold {
    _dmabuf: Memory,
    _binding: RxBinding,
    switch: Arc<Switch>,
}

impl Control for Hold {
    fn tell(&self, command: &Command) -> Result<()> {
        self.switch.tell(command)
    }
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
        let result = match tcp::accept(listener, self.switch, id) {
            Ok(Some(incoming)) => self.pass_on(&incoming, onward),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.report.error = result.err().filter(|_| !self.switch.stopped());
        self.report.tokens_held = self.held.tokens();
        self.report
    }

    /// Receives and sends until the stream ends and everything is returned.
    fn pass_on(&mut self, incoming: &TcpStream, onward: &TcpStream) -> Result<(), Failure> {
        let told = |error: anyhow::Error| failure::from_error(&error);
        let received = receive::devmem(incoming, Capacity::default(), |_, received| {
            self.send_on(received, incoming)?;
            self.wait_for_payload(incoming)
        });
        received.map_err(told)?;
        self.report.end_of_stream = !self.switch.stopped();
        self.report.delivered = tcp::deliver(onward, self.switch)?;
        while self.sender.in_flight() > 0 && !self.switch.stopped() {
            self.wait(None).map_err(told)?;
            self.return_completed(incoming).map_err(told)?;
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
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        // A non-empty error queue is reported as POLLERR, whatever events are requested.
        let completions = PollFd::new(self.sender.socket(), PollFlags::empty());
        let mut sockets = vec![completions];
        sockets.extend(incoming.map(|socket| PollFd::new(socket, PollFlags::IN)));
        poll(&mut sockets, Some(&timeout)).context("waiting for payload and completions")?;
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
