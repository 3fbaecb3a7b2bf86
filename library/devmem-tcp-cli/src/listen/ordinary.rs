// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ordinary sockets, whose payload this process copies into the memory.

use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result, bail};
use devmem_tcp::ReceiveError;
use devmem_tcp::ordinary::Receiver;
use devmem_tcp::way::{ByWay, Way};

use super::{Arguments, Deadline, accept};
use crate::flow::{Run, in_threads};
use crate::memory::Target;

pub(super) fn receive(arguments: &Arguments, listener: &TcpListener, run: &Run) -> Result<()> {
    let memory = arguments.allocate(0, arguments.flows)?;
    let each = memory.first().map_or(0, Target::len);
    let Some(streams) = accept(arguments, listener, run, each * memory.len())? else {
        return Ok(());
    };
    let deadline = Deadline::of(arguments);
    in_threads(run, streams.iter().zip(&memory), |(stream, memory)| {
        receive_one(arguments, stream, memory, run, &deadline)
    })
}

fn receive_one(
    arguments: &Arguments,
    stream: &TcpStream,
    memory: &Target,
    run: &Run,
    deadline: &Deadline,
) -> Result<()> {
    let mut validator = arguments.validator();
    let mut receiver = match memory {
        Target::DmaBuf(memory) => Receiver::new(stream, memory),
        Target::Ram(memory) => Receiver::new(stream, memory),
        Target::Unmapped(_) => bail!("the memory is not mapped"),
    };
    while !deadline.over(run) {
        let fragment = match receiver.receive() {
            Ok(Some(fragment)) => fragment,
            Ok(None) => break,
            Err(ReceiveError::WouldBlock) => continue,
            Err(error) => return Err(error).context("receiving"),
        };
        let so_far = validator.offset();
        let wrong = validator.take(&fragment, memory)?;
        wrong.into_iter().for_each(|wrong| run.wrong(wrong));
        let len = u64::from(fragment.len());
        let mut ways = ByWay::default();
        ways.add(Way::Ordinary, len);
        run.passed(ways, 1);
        receiver.recycle([fragment]);
        if let Some(rpc) = arguments.rpc {
            rpc.respond(stream, so_far, len)?;
        }
    }
    Ok(())
}
