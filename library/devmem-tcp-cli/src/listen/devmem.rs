// SPDX-License-Identifier: MIT OR Apache-2.0

//! Device memory TCP.

use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result, ensure};
use devmem_tcp::ReceiveError;
use devmem_tcp::netdev::RxBinding;
use devmem_tcp::rx::{Piece, Received, Receiver};

use super::{Arguments, Deadline, accept, undo};
use crate::flow::{Run, in_threads};
use crate::memory::Target;

pub(super) fn receive(arguments: &Arguments, listener: &TcpListener, run: &Run) -> Result<()> {
    ensure!(
        !arguments.queues.is_empty(),
        "say which queue receives: --queue"
    );
    let page_size = arguments.page_size()?;
    let memory = arguments.allocate(page_size.unwrap_or(0), 1)?;
    let target = memory.first().context("no memory")?;
    let memory = target.dmabuf()?;
    let (steering, _binding) = match arguments.plan()? {
        Some(plan) => (Some(plan.apply(memory)?), None),
        None => {
            let queues = arguments.queues.iter().copied();
            let mut binder = RxBinding::to(arguments.interface()?).queues(queues);
            if let Some(bytes) = page_size {
                binder = binder.rx_page_size(bytes);
            }
            (None, Some(binder.bind(memory)?))
        }
    };
    let done = match accept(arguments, listener, run, memory.len())? {
        Some(streams) => {
            let deadline = Deadline::of(arguments);
            in_threads(run, &streams, |stream| {
                receive_one(arguments, stream, target, run, &deadline)
            })
        }
        None => Ok(()),
    };
    let undone = undo(steering);
    done.and(undone)
}

fn receive_one(
    arguments: &Arguments,
    stream: &TcpStream,
    memory: &Target,
    run: &Run,
    deadline: &Deadline,
) -> Result<()> {
    let mut validator = arguments.validator();
    let mut receiver = Receiver::new(stream);
    let mut received = Received::default();
    while !deadline.over(run) {
        match receiver.receive_into(&mut received) {
            Ok(()) => {}
            Err(ReceiveError::WouldBlock) => continue,
            Err(error) => return Err(error).context("receiving"),
        }
        if received.end_of_stream {
            break;
        }
        let so_far = validator.offset();
        for piece in received.pieces() {
            let wrong = match piece {
                Piece::Device(fragment) => validator.take(fragment, memory)?,
                Piece::Linear(bytes) => validator.take_linear(bytes),
            };
            wrong.into_iter().for_each(|wrong| run.wrong(wrong));
        }
        run.passed(received.by_way(), received.fragments.len() as u64);
        receiver.recycle(received.fragments.drain(..))?;
        if let Some(rpc) = arguments.rpc {
            rpc.respond(stream, so_far, validator.offset() - so_far)?;
        }
    }
    Ok(())
}
