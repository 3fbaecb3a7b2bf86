// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends what an engine computes: the NIC has the frames before that, and the engine tells it when to send.

use std::{net::TcpStream, thread, time::Duration};

use anyhow::{Result, ensure};
use devmem_tcp::{memory::Memory, tx::Sender};
use gather::{CONTROL_BYTES, Command, Fragment, Operation, TxQueue, Window, WorkQueue};
use protocol::{DevmemSignalled, Event, JobId, Payload, devmem::DevmemSignalledReport};
use rustix::io::Errno;

use super::{binding::bind_for_sending, job::Ready, memory, switch::Switch, tcp};
use crate::outbox::send_event;

/// How long the engine, the NIC and the peer may take; only there to end a hang.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often to look for what happens elsewhere.
const INTERVAL: Duration = Duration::from_millis(5);

pub(super) fn set_up(id: JobId, spec: DevmemSignalled) -> Result<Ready> {
    let bytes = u64::from(spec.messages) * u64::from(spec.message_bytes);
    let computed = memory::allocate(spec.memory, bytes)?;
    let source = memory::allocate(spec.memory, bytes)?;
    let mut payload = vec![0; bytes as usize];
    Payload::new(spec.seed).fill(0, &mut payload);
    source.write_at(0, &payload)?;

    let control = memory::allocate(spec.memory, CONTROL_BYTES as u64)?;
    let mut queue = WorkQueue::open(spec.engine, control)?;
    let windows = (queue.import(&source)?, queue.import(&computed)?);
    let binding = bind_for_sending(spec.ns, &spec.interface, &computed)?;
    let stream = tcp::connect(spec.ns, None, spec.connect)?;
    let sender = tcp::sender(&stream, binding)?;
    let switch = Switch::waiting("DevmemSignalled");
    switch.watch(&stream);
    Ok(Ready::new::<DevmemSignalled, _>(switch, move |switch| {
        let mut report = DevmemSignalledReport::default();
        let job = Signalled {
            spec,
            queue,
            windows,
            sender,
            _memory: [source, computed],
        };
        switch.wait_for_go();
        let result = job.send(&mut report).and_then(|job| {
            send_event(id, Event::Progress { bytes });
            while !switch.finishing() {
                thread::sleep(INTERVAL);
            }
            report.delivered = tcp::deliver(&stream, switch)?;
            drop(job);
            Ok(())
        });
        report.error = switch.failure(result);
        report
    }))
}

struct Signalled {
    spec: DevmemSignalled,
    queue: WorkQueue,
    /// Source and destination of what is computed.
    windows: (Window, Window),
    sender: Sender<TcpStream>,
    _memory: [Memory; 2],
}

impl Signalled {
    /// Sends all messages. Returns itself, which keeps the memory.
    fn send(mut self, report: &mut DevmemSignalledReport) -> Result<Self> {
        let tx = TxQueue::new(&self.spec.nic, self.spec.queue)?;
        let len = self.spec.message_bytes;
        for message in 0..self.spec.messages {
            let at = message * len;
            self.queue.hold(tx)?;
            let sent = self.sender.send(at.into(), len as usize)?;
            ensure!(sent == len as usize, "only {sent} bytes were accepted");
            self.arm()?;
            // Only now there is something to send.
            let command = Command {
                operation: Operation::Copy,
                source: self.windows.0,
                destination: self.windows.1,
                value: 0,
                signal: self.spec.signal,
            };
            let fragment = Fragment {
                source: at,
                len,
                destination: at.into(),
            };
            self.queue.submit(&command, &[fragment])?;
            for completion in self.sender.wait_all(PATIENCE)? {
                report.copied += u64::from(completion.copied);
            }
            if !self.spec.signal {
                let late = Command {
                    operation: Operation::Nothing,
                    signal: true,
                    ..command
                };
                self.queue.submit(&late, &[])?;
            }
            self.queue.wait(PATIENCE)?;
        }
        Ok(self)
    }

    /// Arms the engine, once the frames are on the ring.
    fn arm(&mut self) -> Result<()> {
        loop {
            match self.queue.arm() {
                Err(error) if error.errno() == Some(Errno::AGAIN.raw_os_error()) => {
                    thread::sleep(INTERVAL);
                }
                // It took too long: the NIC's driver rings.
                Err(error) if error.errno() == Some(Errno::NOTCONN.raw_os_error()) => {
                    return Ok(());
                }
                result => return Ok(result?),
            }
        }
    }
}
