// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends TCP streams as fast as it can.

use std::{
    io::Write,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use anyhow::{Context, Result, bail, ensure};
use devmem_tcp::{SendError, memory::Memory, tx::Sender};
use protocol::{
    JobId, MeasuredSource, Payload,
    measure::{MeasuredSourceReport, Path},
};

use super::{
    binding::bind_for_sending,
    job::Ready,
    measured::{Copies, ensure_room, fill, in_threads, wait_for_round_time},
    memory,
    switch::Switch,
    tcp,
};

pub(super) fn set_up(id: JobId, spec: MeasuredSource) -> Result<Ready> {
    ensure!(spec.write != 0, "a write of 0 bytes sends nothing");
    ensure!(spec.flows != 0, "flows must not be 0");
    let switch = Switch::new("MeasuredSource");
    let mut flows = Vec::new();
    for _ in 0..spec.flows {
        let stream = tcp::connect(spec.ns, None, spec.connect)?;
        // Small writes must coalesce into full packets.
        stream.set_nodelay(false).context("clearing TCP_NODELAY")?;
        let origin = Origin::new(id, &spec, &stream)?;
        switch.watch(&stream);
        flows.push((stream, origin));
    }
    Ok(Ready::new::<MeasuredSource, _>(switch, move |switch| {
        let account = Account {
            left: AtomicU64::new(spec.bytes),
            writes: AtomicU64::new(0),
            copied: AtomicU64::new(0),
        };
        let ready = match spec.at_round_time {
            true => wait_for_round_time(),
            false => Ok(()),
        };
        let result = ready.and_then(|()| send(flows, spec.write as usize, &account, switch));
        MeasuredSourceReport {
            bytes: spec.bytes - account.left.load(Relaxed),
            writes: account.writes.load(Relaxed),
            copied: account.copied.load(Relaxed),
            delivered: matches!(result, Ok(true)),
            error: switch.failure(result),
        }
    }))
}

/// Where the payload comes from.
enum Origin {
    Ordinary,
    Copied(Copies),
    Devmem {
        sender: Sender<TcpStream>,
        memory: Memory,
    },
}

impl Origin {
    fn new(id: JobId, spec: &MeasuredSource, stream: &TcpStream) -> Result<Self> {
        let part = |bytes: u64| bytes / u64::from(spec.flows);
        match &spec.path {
            Path::Ordinary => Ok(Self::Ordinary),
            Path::Copied {
                memory,
                dmabuf_bytes,
            } => {
                let copies = Copies::new(*memory, part(*dmabuf_bytes), spec.write)?;
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
                let bytes = part(*dmabuf_bytes);
                ensure_room(bytes, spec.write)?;
                let memory = memory::allocate(*memory, bytes)?;
                fill(&memory)?;
                let binding = bind_for_sending(spec.ns, &spec.interface, &memory)?;
                memory::report_place(id, &memory)?;
                Ok(Self::Devmem {
                    sender: tcp::sender(stream, binding)?,
                    memory,
                })
            }
        }
    }
}

/// The byte budget of all flows, and how much of it was sent.
struct Account {
    left: AtomicU64,
    writes: AtomicU64,
    copied: AtomicU64,
}

impl Account {
    /// Takes the bytes for a write; 0 when the budget is used up.
    fn take(&self, write: usize) -> usize {
        let write = write as u64;
        let taken = self
            .left
            .fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(write)));
        let (Ok(left) | Err(left)) = taken;
        left.min(write) as usize
    }

    /// Returns bytes that were taken but not sent to the budget.
    fn put_back(&self, bytes: usize) {
        self.left.fetch_add(bytes as u64, Relaxed);
    }

    fn written(&self) {
        self.writes.fetch_add(1, Relaxed);
    }
}

/// Sends and delivers, with a thread for each flow. Returns the first error; `Ok(false)` if the job
/// was stopped.
fn send(
    flows: Vec<(Arc<TcpStream>, Origin)>,
    write: usize,
    account: &Account,
    switch: &Switch,
) -> Result<bool> {
    let ended = in_threads(flows, |(stream, origin)| {
        send_flow(&stream, origin, write, account)?;
        tcp::deliver(&stream, switch)
    });
    ended
        .into_iter()
        .try_fold(true, |all, delivered| Ok(all && delivered?))
}

fn send_flow(stream: &TcpStream, origin: Origin, write: usize, account: &Account) -> Result<()> {
    match origin {
        Origin::Ordinary => send_ordinary(stream, write, account, |_| Ok(())),
        Origin::Copied(mut copies) => {
            send_ordinary(stream, write, account, |piece| copies.copy_out(piece))
        }
        Origin::Devmem { sender, memory } => send_devmem(sender, memory.len(), write, account),
    }
}

fn send_ordinary(
    mut stream: &TcpStream,
    write: usize,
    account: &Account,
    mut ready: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; write];
    Payload::new(0).fill(0, &mut buffer);
    loop {
        let len = account.take(write);
        if len == 0 {
            return Ok(());
        }
        ready(&mut buffer[..len])?;
        stream.write_all(&buffer[..len]).context("sending")?;
        account.written();
    }
}

fn send_devmem(
    mut sender: Sender<TcpStream>,
    memory: usize,
    write: usize,
    account: &Account,
) -> Result<()> {
    let mut at = 0;
    loop {
        let len = account.take(write);
        if len == 0 {
            return Ok(());
        }
        if at + len > memory {
            at = 0;
        }
        match sender.send(at as u64, len) {
            Ok(accepted) => {
                at += accepted;
                account.put_back(len - accepted);
                account.written();
            }
            Err(SendError::TooManyInFlight { in_flight, .. }) if in_flight > 0 => {
                account.put_back(len);
                tcp::wait_for_completions(&sender, None)?;
            }
            Err(error) => return Err(error).context("sending"),
        }
        for completion in sender.completions().context("reading completions")? {
            let copied = u64::from(completion.copied);
            account.copied.fetch_add(copied, Relaxed);
        }
    }
}
