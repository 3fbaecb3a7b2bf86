// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives TCP streams as fast as it can, and marks a window of them.

use std::{
    net::{TcpListener, TcpStream},
    ops::ControlFlow,
    sync::{Arc, Mutex},
};

use anyhow::{Result, ensure};
use devmem_tcp::{
    memory::Memory,
    netdev::RxBinding,
    rx::{Capacity, Fragment},
    zcrx::{Config, InterfaceQueue},
};
use protocol::{
    JobId, MeasuredSink,
    measure::{MeasuredSinkReport, Path},
};

use super::{
    area, binding,
    job::Ready,
    measured::{Copies, ensure_room, in_threads},
    measured_window::Flows,
    memory, receive,
    switch::Switch,
    tcp,
};
use crate::lock::lock;

/// Fragments that one call can report: those of 1 MiB in packets of 1500 bytes, and some more.
const PIECES: usize = 1024;

pub(super) fn set_up(id: JobId, spec: MeasuredSink) -> Result<Ready> {
    ensure!(spec.flows != 0, "flows must not be 0");
    let listener = tcp::listen(spec.ns, spec.listen, None)?;
    let target = Target::new(id, &spec)?;
    let switch = Switch::watching("MeasuredSink", &listener);
    Ok(Ready::new::<MeasuredSink, _>(switch, move |switch| {
        let flows = Flows::new(&spec);
        let result = accept(listener, switch, id, spec.flows)
            .and_then(|streams| receive(&streams, target, &spec, &flows));
        MeasuredSinkReport {
            end_of_stream: result.is_ok() && !switch.stopped(),
            error: switch.failure(result),
            ..flows.report()
        }
    }))
}

/// Accepts `flows` connections.
fn accept(
    listener: Arc<TcpListener>,
    switch: &Switch,
    id: JobId,
    flows: u32,
) -> Result<Vec<Arc<TcpStream>>> {
    let streams = (0..flows).map(|_| tcp::accept(Arc::clone(&listener), switch, id));
    streams.collect()
}

/// Where the payload goes.
enum Target {
    Ordinary,
    Copied(Mutex<Copies>),
    Devmem {
        _memory: Memory,
        _bound: RxBinding,
    },
    Zcrx {
        queue: Box<InterfaceQueue>,
        _memory: area::AreaMemory,
    },
}

impl Target {
    fn new(id: JobId, spec: &MeasuredSink) -> Result<Self> {
        match &spec.path {
            Path::Ordinary => Ok(Self::Ordinary),
            Path::Copied {
                memory,
                dmabuf_bytes,
            } => {
                ensure!(spec.flows == 1, "only one flow can be copied");
                let copies = Copies::new(*memory, *dmabuf_bytes, spec.read)?;
                memory::report_place(id, copies.memory())?;
                Ok(Self::Copied(Mutex::new(copies)))
            }
            Path::Devmem {
                memory,
                dmabuf_bytes,
                queues,
                rx_page_size,
            } => {
                ensure_room(*dmabuf_bytes, spec.read)?;
                let memory = memory::allocate(*memory, *dmabuf_bytes)?;
                let bound =
                    binding::bind(spec.ns, &spec.interface, queues, &memory, *rx_page_size)?;
                memory::report_place(id, &memory)?;
                Ok(Self::Devmem {
                    _memory: memory,
                    _bound: bound,
                })
            }
            Path::Zcrx {
                memory,
                area_bytes,
                queue,
                rx_buf_len,
            } => {
                // Kept fragments must leave buffers to receive into.
                ensure_room(*area_bytes / 2, spec.read)?;
                let memory = area::AreaMemory::create(*memory, *area_bytes, rx_buf_len.is_some())?;
                let queue =
                    memory.register(id, (spec.ns, &spec.interface), |interface, area| {
                        let mut config = Config::new(interface, *queue);
                        if let Some(bytes) = rx_buf_len {
                            config = config.rx_buf_len(*bytes);
                        }
                        InterfaceQueue::register(&config, area)
                    })?;
                Ok(Self::Zcrx {
                    queue: Box::new(queue),
                    _memory: memory,
                })
            }
        }
    }
}

/// Receives until all streams have ended.
fn receive(
    streams: &[Arc<TcpStream>],
    target: Target,
    spec: &MeasuredSink,
    flows: &Flows,
) -> Result<()> {
    let read = spec.read as usize;
    match target {
        Target::Ordinary => in_threads(streams, |stream| {
            receive_ordinary(stream, read, flows, |_| Ok(()))
        }),
        Target::Copied(copies) => in_threads(streams, |stream| {
            let mut copies = lock(&copies);
            receive_ordinary(stream, read, flows, |piece| copies.copy_in(piece))
        }),
        // The dma-buf and its binding stay until the streams have ended.
        Target::Devmem { .. } => in_threads(streams, |stream| {
            receive_devmem(stream, read, spec.token_batch, flows)
        }),
        Target::Zcrx { queue, _memory } => vec![receive_zcrx(streams, *queue, read, flows)],
    }
    .into_iter()
    .collect()
}

fn receive_ordinary(
    stream: &TcpStream,
    read: usize,
    flows: &Flows,
    mut done: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    flows.look()?;
    receive::copied(stream, read, |piece| {
        done(piece)?;
        flows.received(piece.len() as u64, 0);
        flows.look()
    })
}

fn receive_devmem(
    stream: &TcpStream,
    read: usize,
    token_batch: Option<u32>,
    flows: &Flows,
) -> Result<()> {
    let capacity = Capacity {
        bytes: read,
        pieces: PIECES,
    };
    let mut held: Vec<Fragment> = Vec::with_capacity(2 * PIECES);
    flows.look()?;
    receive::devmem(stream, capacity, |receiver, received| {
        flows.received(received.bytes(), received.fragments.len());
        flows.astray(received.linear.len() as u64);
        held.append(&mut received.fragments);
        match token_batch {
            None => receiver.recycle(held.drain(..))?,
            Some(batch) => {
                let batch = batch.max(1) as usize;
                while held.len() >= batch {
                    receiver.recycle(held.drain(..batch))?;
                }
            }
        }
        flows.look()
    })
}

/// The kernel decides when and how much to receive: `batch` bytes are returned together.
fn receive_zcrx(
    streams: &[Arc<TcpStream>],
    queue: InterfaceQueue,
    batch: usize,
    flows: &Flows,
) -> Result<()> {
    let (mut receiver, mut refill) = queue.start()?;
    let streams: Vec<_> = streams.iter().map(|stream| &**stream).collect();
    // Bytes received at the last return, and fragments that are not returned.
    let (mut returned, mut kept) = (0, 0);
    flows.look()?;
    receive::zcrx(&mut receiver, &streams, None, |_, fragments| {
        let came = &fragments[kept..];
        let bytes = came.iter().map(|fragment| u64::from(fragment.len())).sum();
        flows.received(bytes, came.len());
        if flows.bytes() - returned >= batch as u64 {
            returned = flows.bytes();
            refill.recycle(fragments.drain(..))?;
        }
        kept = fragments.len();
        flows.look()?;
        Ok(ControlFlow::Continue(()))
    })?;
    flows.astray(receiver.copied().unwrap_or_default().bytes);
    Ok(())
}
