// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends from one dma-buf through many connections, to `server`.

use std::process::ExitCode;
use std::sync::Arc;

use devmem_tcp::interface::Interface;
use devmem_tcp::memory::Memory;
use devmem_tcp::netdev::TxBinding;
use devmem_tcp::tokio::Sender;
use devmem_tcp::tx::{self, Completion};
use shared::{MEMORY, Pattern, Result, memory};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

mod shared;

/// Pieces of a connection's memory: one is filled while others are under way.
const SLOTS: usize = 4;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface, address, connections, mebibytes, memory] = &arguments[..] else {
        eprintln!("usage: client <interface> <address:port> <connections> <MiB> <memory>");
        eprintln!(
            "The connections share the payload, and must leave through the interface.\n{MEMORY}"
        );
        return ExitCode::from(2);
    };
    match run(interface, address, connections, mebibytes, memory).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(
    interface: &str,
    address: &str,
    connections: &str,
    mebibytes: &str,
    of: &str,
) -> Result {
    let memory = Arc::new(memory(of)?);
    let interface: Interface = interface.parse()?;
    let binding = Arc::new(TxBinding::to(interface).bind(&*memory)?);
    let connections: u64 = connections.parse()?;
    let bytes = (mebibytes.parse::<u64>()? << 20) / connections;
    let share = memory.len() / connections as usize;

    let mut tasks = JoinSet::new();
    for seed in 0..connections {
        let stream = TcpStream::connect(address).await?.into_std()?;
        let sender = tx::Sender::new(stream, Arc::clone(&binding))?;
        let part = Part {
            memory: Arc::clone(&memory),
            start: seed as usize * share,
            slot_len: share / SLOTS,
        };
        tasks.spawn(send(Sender::new(sender, share)?, part, seed, bytes));
    }
    let mut copied = 0;
    while let Some(task) = tasks.join_next().await {
        copied += task??;
    }
    let all = bytes * connections;
    println!("{connections} connections: {all} bytes sent, {copied} of them copied by the kernel");
    Ok(())
}

/// A connection's part of the memory.
struct Part {
    memory: Arc<Memory>,
    start: usize,
    slot_len: usize,
}

/// Sends all, and waits until it is complete; counts bytes that the kernel copied.
async fn send(
    mut sender: Sender<std::net::TcpStream>,
    part: Part,
    seed: u64,
    bytes: u64,
) -> Result<u64> {
    let mut pattern = Pattern::default();
    // What of each slot is under way.
    let mut under_way = [0; SLOTS];
    let (mut position, mut copied) = (0, 0);
    let mut done: Vec<Completion> = Vec::new();
    let mut account = |done: &mut Vec<Completion>, under_way: &mut [usize; SLOTS]| {
        for done in done.drain(..) {
            under_way[(done.offset as usize - part.start) / part.slot_len] -= done.len;
            copied += if done.copied { done.len as u64 } else { 0 };
        }
    };
    for slot in (0..SLOTS).cycle() {
        let len = (part.slot_len as u64).min(bytes - position) as usize;
        if len == 0 {
            break;
        }
        // Bytes under way must not change.
        while under_way[slot] > 0 {
            sender.complete(&mut done).await?;
            account(&mut done, &mut under_way);
        }
        let offset = part.start + slot * part.slot_len;
        part.memory
            .write_at(offset, pattern.of(seed, position, len))?;
        sender.send_all(offset as u64, len, &mut done).await?;
        under_way[slot] = len;
        position += len as u64;
        account(&mut done, &mut under_way);
    }
    sender.flush(&mut done).await?;
    account(&mut done, &mut under_way);
    sender.finish()?;
    Ok(copied)
}
