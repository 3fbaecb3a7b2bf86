// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends a TCP stream as fast as it can.

use std::{io::Write, net::TcpStream, sync::Arc};

use anyhow::{Context, Result, bail, ensure};
use devmem::{Error, memory::Memory, netdev::bind_tx, tx::Sender};
use protocol::{
    JobId, MeasuredSource, Payload,
    measure::{MeasuredSourceReport, Path},
};
use rustix::event::{PollFd, PollFlags, poll};

use super::{
    Ready,
    measured::{Copies, ensure_room, fill, wait_for_round_time},
    memory,
    switch::Switch,
    tcp,
};
use crate::{failure, netns, rtnetlink};

pub(super) fn set_up(id: JobId, spec: MeasuredSource) -> Result<Ready> {
    ensure!(spec.write != 0, "a write of 0 bytes sends nothing");
    let stream = netns::within(spec.ns, || tcp::connect(None, spec.connect))?;
    // Writes shall fill packets, whatever their size.
    stream.set_nodelay(false).context("clearing TCP_NODELAY")?;
    let origin = Origin::new(id, &spec, &stream)?;
    let stream = Arc::new(stream);
    let switch = Switch::new("MeasuredSource");
    switch.watch(&stream);
    let control = Arc::clone(&switch);
    Ok(Ready::new::<MeasuredSource>(control, move || {
        let mut source = Source {
            total: spec.bytes,
            write: spec.write as usize,
            report: MeasuredSourceReport {
                bytes: 0,
                writes: 0,
                copied: 0,
                delivered: false,
                error: None,
            },
        };
        let result = wait_for_round_time()
            .and_then(|()| source.send(&stream, origin))
            .map_err(|error| failure::from_error(&error))
            .and_then(|()| tcp::deliver(&stream, &switch));
        match result {
            Ok(delivered) => source.report.delivered = delivered,
            Err(error) => source.report.error = Some(error).filter(|_| !switch.stopped()),
        }
        source.report
    }))
}

/// Where the payload comes from.
enum Origin {
    Ordinary,
    Copied(Copies),
    Devmem { sender: Sender, memory: Memory },
}

impl Origin {
    fn new(id: JobId, spec: &MeasuredSource, stream: &TcpStream) -> Result<Self> {
        match &spec.path {
            Path::Ordinary => Ok(Self::Ordinary),
            Path::Copied {
                memory,
                dmabuf_bytes,
            } => {
                let copies = Copies::new(*memory, *dmabuf_bytes, spec.write)?;
                fill(copies.memory())?;
                memory::report_place(id, copies.memory())?;
                Ok(Self::Copied(copies))
            }
            Path::Zcrx { .. } => bail!("zero-copy receive sends nothing"),
            Path::Devmem {
                memory,
                dmabuf_bytes,
                ..
            } => {
                ensure_room(*dmabuf_bytes, spec.write)?;
                let memory = memory::allocate(*memory, *dmabuf_bytes)?;
                fill(&memory)?;
                let own = stream.try_clone().context("duplicating the socket")?;
                let binding = netns::within(spec.ns, || {
                    Ok(bind_tx(rtnetlink::index_of(&spec.interface)?, &memory)?)
                })?;
                memory::report_place(id, &memory)?;
                Ok(Self::Devmem {
                    sender: Sender::new(own, binding)?,
                    memory,
                })
            }
        }
    }
}

struct Source {
    total: u64,
    write: usize,
    report: MeasuredSourceReport,
}

impl Source {
    fn send(&mut self, stream: &TcpStream, origin: Origin) -> Result<()> {
        match origin {
            Origin::Ordinary => self.write(stream, |_| Ok(())),
            Origin::Copied(mut copies) => self.write(stream, |piece| copies.copy_out(piece)),
            Origin::Devmem { sender, memory } => self.send_devmem(sender, memory.len()),
        }
    }

    /// Bytes of the next write.
    fn next(&self) -> usize {
        let left = self.total - self.report.bytes;
        self.write.min(left.try_into().unwrap_or(usize::MAX))
    }

    fn write(
        &mut self,
        mut stream: &TcpStream,
        mut ready: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = vec![0; self.write];
        Payload::new(0).fill(0, &mut buffer);
        while self.report.bytes < self.total {
            let len = self.next();
            ready(&mut buffer[..len])?;
            stream.write_all(&buffer[..len]).context("sending")?;
            self.report.bytes += len as u64;
            self.report.writes += 1;
        }
        Ok(())
    }

    fn send_devmem(&mut self, mut sender: Sender, memory: usize) -> Result<()> {
        let mut at = 0;
        while self.report.bytes < self.total {
            let len = self.next();
            if at + len > memory {
                at = 0;
            }
            match sender.send(at as u64, len) {
                Ok(accepted) => {
                    at += accepted;
                    self.report.bytes += accepted as u64;
                    self.report.writes += 1;
                }
                Err(Error::TooManyInFlight { in_flight, .. }) if in_flight > 0 => {
                    // A filled error queue is reported as POLLERR, whatever is asked for.
                    let mut sockets = [PollFd::new(sender.stream(), PollFlags::empty())];
                    poll(&mut sockets, None).context("waiting for completions")?;
                }
                Err(error) => return Err(error).context("sending"),
            }
            for completion in sender.completions().context("reading completions")? {
                self.report.copied += u64::from(completion.copied);
            }
        }
        Ok(())
    }
}
