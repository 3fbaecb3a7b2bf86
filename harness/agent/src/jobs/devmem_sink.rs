// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream into a dma-buf.

use std::{
    mem,
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, Weak},
};

use anyhow::{Context, Result};
use devmem_tcp::{
    netdev::RxBinding,
    rx::{Capacity, Fragment, Piece, Received, Recycler},
};
use protocol::{Command, DevmemSink, JobId, devmem::DevmemSinkReport, memory::Span};

use super::{
    binding,
    held::{self, Held, Policy, Source},
    job::{Control, Ready, not_understood},
    memory, receive,
    switch::Switch,
    tcp,
};
use crate::lock::lock;

pub(super) fn set_up(id: JobId, spec: DevmemSink) -> Result<Ready> {
    // The window closes when payload waiting in the socket takes half of the dma-buf. A larger
    // window would invite packets for which there is no memory.
    let buffer = (spec.dmabuf_bytes / 4) as usize;
    let listener = tcp::listen(spec.ns, spec.listen, Some(buffer))?;
    let dmabuf = memory::allocate(spec.memory, spec.dmabuf_bytes)?;
    let binding = binding::bind(
        spec.ns,
        &spec.interface,
        &spec.queues,
        &dmabuf,
        spec.rx_page_size,
    )?;
    memory::report_place(id, &dmabuf)?;
    let switch = Switch::watching("DevmemSink", &listener);
    let memory = Bound {
        dmabuf: dmabuf.into(),
        binding: Mutex::new(Some(binding)),
    };
    let policy = Policy {
        seed: spec.seed,
        verify: spec.verify,
        report: spec.report,
        release: spec.release,
    };
    let sink = Arc::new(Sink {
        id,
        switch,
        held: Held::new(id, policy, memory, Tokens::default()),
    });
    Ok(Ready::new::<DevmemSink, _>(sink, move |sink| {
        sink.run(listener)
    }))
}

/// State shared by the receiving thread and the threads that control it.
struct Sink {
    id: JobId,
    switch: Arc<Switch>,
    held: Held<Bound>,
}

/// The dma-buf and the binding live until the job is joined: the host may still be reading.
struct Bound {
    dmabuf: memory::Closable,
    binding: Mutex<Option<RxBinding>>,
}

/// The socket whose tokens these are.
#[derive(Default)]
struct Tokens {
    stream: Weak<TcpStream>,
    recycler: Recycler,
}

impl held::Fragment for Fragment {
    fn span(&self) -> Span {
        (self.offset(), self.len()).into()
    }
}

impl Source for Bound {
    type Fragment = Fragment;
    type Returner = Tokens;

    fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        Ok(self.dmabuf.view().read_at(offset, bytes)?)
    }

    fn return_fragments(tokens: &mut Tokens, fragments: Vec<Fragment>) -> Result<()> {
        // The kernel took all tokens back when the socket closed.
        if let Some(stream) = tokens.stream.upgrade() {
            tokens.recycler.recycle(&*stream, fragments)?;
        }
        Ok(())
    }
}

impl Control for Sink {
    fn tell(&self, command: &Command) -> Result<()> {
        match command {
            Command::Release { batch } => self.held.release(*batch)?,
            Command::ReleaseAll => self.held.release_all()?,
            Command::CloseBinding => {
                let binding = lock(&self.held.source.binding).take();
                drop(binding.context("the binding was closed before")?);
            }
            Command::CloseDmaBuf => self.held.source.dmabuf.close()?,
            Command::Stop => self.switch.stop(),
            other @ (Command::Finish | Command::Program(_) | Command::Kill | Command::Go) => {
                return Err(not_understood("DevmemSink", other));
            }
        }
        self.held.notify();
        Ok(())
    }
}

impl Sink {
    fn run(&self, listener: Arc<TcpListener>) -> DevmemSinkReport {
        let mut end_of_stream = false;
        let result = tcp::accept(listener, &self.switch, self.id).and_then(|stream| {
            self.receive(&stream, &mut end_of_stream)?;
            // The socket is open: the tokens are still ours.
            self.held.check_rest()
        });
        let counts = self.held.counts();
        DevmemSinkReport {
            bytes: counts.bytes,
            linear_bytes: counts.linear_bytes,
            fragments: counts.fragments,
            tokens_held: counts.held,
            mismatch: counts.mismatch,
            end_of_stream,
            error: self.switch.failure(result),
            elapsed_ns: counts.elapsed_ns,
        }
    }

    /// Receives until the stream ends and its fragments are released.
    fn receive(&self, stream: &Arc<TcpStream>, end_of_stream: &mut bool) -> Result<()> {
        self.held
            .with_returner(|tokens| tokens.stream = Arc::downgrade(stream));
        receive::devmem(stream, Capacity::default(), |_, received| {
            self.take_in(received)
        })?;
        if !self.switch.stopped() {
            *end_of_stream = true;
            // The socket must stay open until all tokens are returned on it.
            self.held.wait_for_release(|| self.switch.stopped());
        }
        Ok(())
    }

    /// Takes in what one receive call returned.
    fn take_in(&self, received: &mut Received) -> Result<()> {
        let mut run = Vec::new();
        for piece in received.drain_pieces() {
            match piece {
                Piece::Device(fragment) => run.push(fragment),
                Piece::Linear(bytes) => {
                    self.held.take_in(mem::take(&mut run))?;
                    self.held.take_in_linear(bytes);
                }
            }
        }
        self.held.take_in(run)
    }
}
