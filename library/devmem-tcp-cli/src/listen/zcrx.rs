// SPDX-License-Identifier: MIT OR Apache-2.0

//! io_uring zero-copy receive, with a NIC and without.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result, ensure};
use devmem_tcp::ZcrxError;
use devmem_tcp::way::{ByWay, Way};
use devmem_tcp::zcrx::{Config, End, Event, InterfaceQueue};

use super::{Arguments, Deadline, Mode, accept, undo};
use crate::flow::{LOOK, Run};
use crate::memory::Target;

pub(super) fn receive(arguments: &Arguments, listener: &TcpListener, run: &Run) -> Result<()> {
    let page_size = arguments.page_size()?;
    let mut memory = arguments.allocate(page_size.unwrap_or(0), 1)?;
    let target = memory.pop().context("no memory")?;
    let (mut config, plan) = match arguments.mode {
        Mode::ZcrxNodev => {
            let ram = matches!(target, Target::Ram(_));
            ensure!(
                ram,
                "what the kernel copies into is ordinary memory: --memory ram"
            );
            (Config::without_device(), None)
        }
        _ => {
            ensure!(
                arguments.queues.len() == 1,
                "say which queue receives: --queue, once"
            );
            let config = Config::new(arguments.interface()?, arguments.queues[0]);
            (config, arguments.plan()?)
        }
    };
    if let Some(bytes) = page_size {
        config = config.rx_buf_len(bytes);
    }
    let steering = plan.map(|plan| plan.apply_unbound()).transpose()?;
    let queue = InterfaceQueue::register(&config, target.area())?;
    let done = match accept(arguments, listener, run, target.len()) {
        Ok(Some(streams)) => receive_all(arguments, queue, &streams, &target, run),
        none => {
            // The undoing waits for it.
            drop(queue);
            none.map(drop)
        }
    };
    let undone = undo(steering);
    done.and(undone)
}

fn receive_all(
    arguments: &Arguments,
    queue: InterfaceQueue,
    streams: &[TcpStream],
    target: &Target,
    run: &Run,
) -> Result<()> {
    let deadline = Deadline::of(arguments);
    let (mut receiver, mut refill) = queue.start()?;
    let mut flows = BTreeMap::new();
    for stream in streams {
        let connection = receiver.receive_from(stream)?;
        flows.insert(connection, (stream, arguments.validator()));
    }
    let mut copied = 0;
    let mut events = Vec::new();
    while !flows.is_empty() && !deadline.over(run) {
        receiver.wait(Some(LOOK), &mut events)?;
        let (mut bytes, mut pieces) = (0, 0);
        let mut recycled = Vec::new();
        for event in events.drain(..) {
            match event {
                Event::Fragment {
                    connection,
                    fragment,
                } => {
                    if let Some((stream, validator)) = flows.get_mut(&connection) {
                        let so_far = validator.offset();
                        let wrong = validator.take(&fragment, target)?;
                        wrong.into_iter().for_each(|wrong| run.wrong(wrong));
                        if let Some(rpc) = arguments.rpc {
                            rpc.respond(stream, so_far, fragment.len().into())?;
                        }
                    }
                    bytes += u64::from(fragment.len());
                    pieces += 1;
                    recycled.push(fragment);
                }
                Event::Ended { connection, end } => {
                    flows.remove(&connection);
                    if let End::Failed(error) = end {
                        return Err(error).context("receiving");
                    }
                }
                // Whoever is starved goes on when all is recycled below.
                _ => {}
            }
        }
        refill.recycle(recycled)?;
        if refill.waiting() > 0 {
            match receiver.flush() {
                // The driver makes room as it needs buffers.
                Err(ZcrxError::KernelTooOld { .. }) => {}
                flushed => flushed?,
            }
            refill.recycle([])?;
        }
        if pieces > 0 {
            let new = match arguments.mode {
                Mode::ZcrxNodev => Some(bytes),
                // Since the last time.
                _ => receiver.copied().map(|now| now.bytes - copied),
            };
            let ways = ByWay::through_io_uring(bytes, new);
            copied += ways.get(Way::Copied);
            run.passed(ways, pieces);
        }
    }
    Ok(())
}
