// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends a TCP stream from a dma-buf.

use std::{
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use devmem_tcp::{
    SendError,
    netdev::TxBinding,
    tx::{Completion, Sender},
};
use protocol::{Command, DevmemSource, Fill, JobId, Payload, devmem::DevmemSourceReport};

use super::{
    binding::bind_for_sending,
    job::{Control, Ready},
    memory::{self, Closable},
    report::Meter,
    switch::Switch,
    tcp,
};

/// How long to wait for the last completions after the peer has received everything.
const LAST_COMPLETIONS: Duration = Duration::from_secs(30);

pub(super) fn set_up(id: JobId, spec: DevmemSource) -> Result<Ready> {
    ensure!(
        spec.chunk != 0 && u64::from(spec.chunk) <= spec.dmabuf_bytes,
        "chunk must be from 1 to the dma-buf's {} bytes, but is {}",
        spec.dmabuf_bytes,
        spec.chunk
    );
    ensure!(
        spec.fill == Fill::Guest || spec.bytes.is_some_and(|bytes| bytes <= spec.dmabuf_bytes),
        "the host fills the dma-buf once, so its {} bytes must hold the whole stream",
        spec.dmabuf_bytes
    );
    let dmabuf = memory::allocate(spec.memory, spec.dmabuf_bytes)?;
    let binding = Arc::new(bind_for_sending(spec.ns, &spec.interface, &dmabuf)?);
    let stream = tcp::connect(spec.ns, spec.bind, spec.connect)?;
    let sender = tcp::sender(&stream, Arc::clone(&binding))?;
    memory::report_place(id, &dmabuf)?;

    let dmabuf = Arc::new(Closable::from(dmabuf));
    let slots = Slots::new(&spec, Arc::clone(&dmabuf))?;
    let switch = match spec.fill {
        Fill::Guest => Switch::new("DevmemSource"),
        Fill::Host => Switch::waiting("DevmemSource"),
    };
    switch.watch(&stream);
    let steering = Arc::new(Steering {
        switch,
        binding,
        dmabuf,
    });
    Ok(Ready::new::<DevmemSource, _>(steering, move |steering| {
        let source = Source {
            sender,
            slots,
            switch: &steering.switch,
            meter: Meter::new(id),
            report: DevmemSourceReport::default(),
        };
        source.run(&stream)
    }))
}

/// What commands can take away from the sender. It lives until the job is joined, and so does the
/// binding.
struct Steering {
    switch: Arc<Switch>,
    binding: Arc<TxBinding>,
    dmabuf: Arc<Closable>,
}

impl Control for Steering {
    fn tell(&self, command: &Command) -> Result<()> {
        match command {
            Command::CloseBinding => self.binding.close(),
            Command::CloseDmaBuf => self.dmabuf.close()?,
            other => self.switch.tell(other)?,
        }
        Ok(())
    }
}

/// The dma-buf divided into slots of one send each, which hold the stream's pieces in turn.
struct Slots {
    dmabuf: Arc<Closable>,
    payload: Payload,
    chunk: u64,
    total: u64,
    /// Bytes of each slot that were sent but not completed.
    in_flight: Vec<u64>,
}

impl Slots {
    /// Fills all slots with the start of the stream, unless the host does.
    fn new(spec: &DevmemSource, dmabuf: Arc<Closable>) -> Result<Self> {
        let chunk = u64::from(spec.chunk);
        let total = spec.bytes.unwrap_or(u64::MAX);
        // A last, shorter piece may use the rest behind the last whole slot.
        let needed = total.div_ceil(chunk);
        let whole = spec.dmabuf_bytes / chunk;
        let fits = total <= spec.dmabuf_bytes;
        let count = if fits { needed } else { whole };
        let slots = Self {
            dmabuf,
            payload: Payload::new(spec.seed),
            chunk,
            total,
            in_flight: vec![0; count as usize],
        };
        if spec.fill == Fill::Guest {
            for piece in 0..count {
                slots.fill(piece)?;
            }
        }
        Ok(slots)
    }

    /// Bytes of a piece of the stream; the last one may be shorter.
    fn len(&self, piece: u64) -> usize {
        self.chunk
            .min(self.total.saturating_sub(piece * self.chunk)) as usize
    }

    fn slot(&self, piece: u64) -> usize {
        (piece % self.in_flight.len() as u64) as usize
    }

    /// Where a piece of the stream is in the dma-buf.
    fn offset(&self, piece: u64) -> u64 {
        self.slot(piece) as u64 * self.chunk
    }

    fn fill(&self, piece: u64) -> Result<()> {
        let mut bytes = vec![0; self.len(piece)];
        self.payload.fill(piece * self.chunk, &mut bytes);
        let view = self.dmabuf.view();
        Ok(view.write_at(self.offset(piece) as usize, &bytes)?)
    }

    /// Records a completion.
    fn completed(&mut self, completion: &Completion) {
        let slot = (completion.offset / self.chunk) as usize;
        if let Some(in_flight) = self.in_flight.get_mut(slot) {
            *in_flight = in_flight.saturating_sub(completion.len as u64);
        }
    }
}

struct Source<'a> {
    sender: Sender<TcpStream>,
    slots: Slots,
    switch: &'a Switch,
    meter: Meter,
    report: DevmemSourceReport,
}

impl Source<'_> {
    fn run(mut self, stream: &TcpStream) -> DevmemSourceReport {
        self.switch.wait_for_go();
        self.meter.start();
        let result = self.send_everything().and_then(|()| self.deliver(stream));
        self.report.error = self.switch.failure(result);
        self.report.retransmits = tcp::retransmits(stream);
        if self.switch.stopped() {
            tcp::give_up(stream);
        }
        self.report.elapsed_ns = self.meter.elapsed_ns();
        self.report
    }

    fn send_everything(&mut self) -> Result<()> {
        let slots = self.slots.in_flight.len() as u64;
        for piece in 0.. {
            if self.report.bytes == self.slots.total || self.switch.finishing() {
                break;
            }
            if piece >= slots {
                self.refill(piece)?;
            }
            self.send(piece)?;
        }
        Ok(())
    }

    /// Puts a piece into the slot of an earlier one, once the NIC is done with that.
    fn refill(&mut self, piece: u64) -> Result<()> {
        let slot = self.slots.slot(piece);
        while self.slots.in_flight[slot] != 0 && !self.switch.stopped() {
            self.wait_for_completions()?;
        }
        self.slots.fill(piece)
    }

    fn send(&mut self, piece: u64) -> Result<()> {
        let start = self.slots.offset(piece);
        let len = self.slots.len(piece);
        let slot = self.slots.slot(piece);
        let mut sent = 0;
        let mut unreachable = false;
        while sent < len && !self.switch.stopped() {
            match self.sender.send(start + sent as u64, len - sent) {
                Ok(accepted) => {
                    sent += accepted;
                    self.slots.in_flight[slot] += accepted as u64;
                    self.report.sends += 1;
                    self.report.bytes += accepted as u64;
                    self.meter.passed(self.report.bytes);
                }
                Err(SendError::TooManyInFlight { in_flight, .. }) if in_flight > 0 => {
                    self.wait_for_completions()?;
                }
                // An interface that is down may come up again.
                Err(SendError::RouteElsewhere { .. }) => {
                    unreachable = true;
                    self.wait_for_completions()?;
                }
                // The first send after that: the kernel treats the device as one that cannot do
                // zero copy, and looks up the route only afterwards (`tcp_sendmsg_locked()`).
                Err(SendError::NotSendable { .. }) if unreachable => {
                    unreachable = false;
                }
                Err(error) => return Err(error).context("sending"),
            }
        }
        self.take_completions()
    }

    /// Closes the stream, and waits until the peer and the NIC are done with it.
    fn deliver(&mut self, stream: &TcpStream) -> Result<()> {
        self.report.delivered = tcp::deliver(stream, self.switch)?;
        self.meter.end();
        let start = Instant::now();
        while self.sender.in_flight() > 0 && start.elapsed() < LAST_COMPLETIONS {
            if self.switch.stopped() {
                break;
            }
            self.wait_for_completions()?;
        }
        self.take_completions()
    }

    /// Waits a little for completions, so that a stopped job notices.
    fn wait_for_completions(&mut self) -> Result<()> {
        tcp::wait_for_completions(&self.sender, Some(&tcp::LOOK))?;
        self.take_completions()
    }

    fn take_completions(&mut self) -> Result<()> {
        for completion in self.sender.completions().context("reading completions")? {
            self.slots.completed(&completion);
            self.report.completions += 1;
            self.report.copied += u64::from(completion.copied);
        }
        Ok(())
    }
}
