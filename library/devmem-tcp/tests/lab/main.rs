// SPDX-License-Identifier: MIT OR Apache-2.0

//! io_uring's zero-copy receive with a NIC, and without, device memory that is held, steering, and bindings in other
//! namespaces. These tests run in nobounce's lab, one at a time:
//! `nobounce exec -- PROGRAM --ignored --test-threads 1`.

mod connections;
mod held;
mod memory;
mod namespaces;
mod no_device;
mod notifications;
mod own_ring;
mod payload;
mod steering;

use std::env;
use std::net::{IpAddr, TcpListener, TcpStream};

use devmem_tcp::interface::Interface;
use devmem_tcp::namespace::Namespace;
use devmem_tcp::zcrx::Config;
use rustix::net::sockopt::set_socket_recv_buffer_size;

const MIB: usize = 1 << 20;

/// The lab's NIC, which all TCP reaches through one queue, and the other end of its wire.
struct Lab {
    interface: Interface,
    queue: u32,
    address: IpAddr,
    peer: Namespace,
}

fn variable(name: &str) -> String {
    let name = format!("NOBOUNCE_{name}");
    env::var(&name).unwrap_or_else(|_| panic!("{name} is not set: this is not the lab"))
}

impl Lab {
    fn find() -> Self {
        Self {
            interface: variable("NIC").parse().expect("an interface"),
            queue: variable("QUEUE").parse().expect("a queue"),
            address: variable("ADDRESS").parse().expect("an address"),
            peer: Namespace::named(&variable("PEER_NETNS")).expect("the peer"),
        }
    }

    fn config(&self) -> Config {
        Config::new(self.interface, self.queue)
    }

    /// Our end of a connection, and the peer's.
    fn connect(&self) -> (TcpStream, TcpStream) {
        let listener = listen(self.address);
        let address = listener.local_addr().expect("an address");
        let theirs = self.peer.run(|| TcpStream::connect(address));
        let theirs = theirs.expect("the peer's namespace").expect("connect");
        (listener.accept().expect("accept").0, theirs)
    }
}

/// A listener whose connections hold no more than a part of each test's memory.
fn listen(address: IpAddr) -> TcpListener {
    let listener = TcpListener::bind((address, 0)).expect("listen");
    set_socket_recv_buffer_size(&listener, 2 * MIB).expect("SO_RCVBUF");
    listener
}
