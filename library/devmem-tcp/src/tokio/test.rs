// SPDX-License-Identifier: MIT OR Apache-2.0

//! What tests of both directions share.

use std::net::{TcpListener, TcpStream};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Builder, Runtime};

/// A runtime of one thread, and one of several.
pub(super) fn runtimes() -> [Runtime; 2] {
    let runtimes = [
        Builder::new_current_thread().enable_all().build(),
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build(),
    ];
    runtimes.map(|runtime| runtime.expect("a runtime"))
}

/// Two ends of a connection over the loopback interface.
pub(super) fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let stream = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (peer, _) = listener.accept().expect("accept");
    (stream, peer)
}

/// Polls a future once, and drops it.
pub(super) fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Bytes of which no two pieces are the same.
pub(super) fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n ^ (n >> 8) ^ (n >> 16)) as u8).collect()
}
