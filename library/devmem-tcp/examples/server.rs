// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives from many connections into one dma-buf, and verifies what `client` sends.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use devmem_tcp::interface::Interface;
use devmem_tcp::memory::Memory;
use devmem_tcp::netdev::RxBinding;
use devmem_tcp::rx::{Piece, Received};
use devmem_tcp::tokio::{Limit, Receiver};
use shared::{MEMORY, Pattern, Result, memory};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

mod shared;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface, queue, address, connections, memory] = &arguments[..] else {
        eprintln!("usage: server <interface> <queue> <address:port> <connections> <memory>");
        eprintln!("All of the connections must reach the queue, with header split on.\n{MEMORY}");
        return ExitCode::from(2);
    };
    match run(interface, queue, address, connections, memory).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(interface: &str, queue: &str, address: &str, connections: &str, of: &str) -> Result {
    let memory = Arc::new(memory(of)?);
    let interface: Interface = interface.parse()?;
    let _binding = RxBinding::to(interface)
        .queue(queue.parse()?)
        .bind(&*memory)?;
    let connections: usize = connections.parse()?;
    // A half is for the application, a quarter for what the sockets hold, of which the kernel grants twice as
    // much, and the rest is for packets under way.
    let share = memory.len() / connections;
    let address: SocketAddr = address.parse()?;
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.set_recv_buffer_size(u32::try_from(share / 8)?)?;
    socket.bind(address)?;
    let listener = socket.listen(1024)?;

    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (stream, _) = listener.accept().await?;
        let receiver = Receiver::new(stream.into_std()?, Limit::new(share / 2))?;
        tasks.spawn(receive(receiver, Arc::clone(&memory)));
    }
    let (mut device, mut linear) = (0, 0);
    while let Some(task) = tasks.join_next().await {
        let counts = task??;
        device += counts.0;
        linear += counts.1;
    }
    println!(
        "{connections} connections: {device} bytes in device memory, {linear} elsewhere, verified"
    );
    Ok(())
}

/// Receives until the peer has sent all; counts bytes in device memory and elsewhere.
async fn receive(
    mut receiver: Receiver<std::net::TcpStream>,
    memory: Arc<Memory>,
) -> Result<(u64, u64)> {
    let (mut device, mut linear) = (0, 0);
    let (mut pattern, mut seed) = (Pattern::default(), None);
    let (mut received, mut copy) = (Received::default(), Vec::new());
    loop {
        receiver.receive_into(&mut received).await?;
        if received.end_of_stream {
            return Ok((device, linear));
        }
        for piece in received.pieces() {
            let position = device + linear;
            let came = match piece {
                Piece::Device(fragment) => {
                    device += u64::from(fragment.len());
                    copy.resize(fragment.len() as usize, 0);
                    fragment.read(&*memory, 0, &mut copy)?;
                    &copy
                }
                Piece::Linear(bytes) => {
                    linear += bytes.len() as u64;
                    bytes
                }
            };
            let seed = match seed {
                Some(seed) => seed,
                None => {
                    let first = came.first_chunk().ok_or("less than 8 bytes came first")?;
                    *seed.insert(u64::from_le_bytes(*first))
                }
            };
            if came != pattern.of(seed, position, came.len()) {
                return Err(format!("other bytes came at {position} of connection {seed}").into());
            }
        }
        receiver.recycle(received.fragments.drain(..))?;
    }
}
