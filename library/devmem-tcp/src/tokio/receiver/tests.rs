// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use super::super::test::{bytes, connection, poll_once, runtimes};
use super::*;

const LIMIT: usize = 1 << 20;

fn receiver(stream: TcpStream) -> Receiver<TcpStream> {
    Receiver::new(stream, Limit::new(LIMIT)).expect("a receiver")
}

async fn rest(receiver: &mut Receiver<TcpStream>) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let received = receiver.receive().await.expect("receive");
        if received.end_of_stream {
            return all;
        }
        all.extend(received.linear);
    }
}

#[test]
fn an_ordinary_connection_delivers_its_bytes_and_its_end_in_any_runtime() {
    for runtime in runtimes() {
        let (stream, mut peer) = connection();
        let sent = bytes(5 << 20);
        let copy = sent.clone();
        let writer = thread::spawn(move || peer.write_all(&copy));
        let came = runtime.block_on(async {
            let mut receiver = receiver(stream);
            let came = rest(&mut receiver).await;
            let again = receiver.receive().await.expect("receive");
            assert!(again.end_of_stream, "the end stays the end");
            came
        });
        writer.join().expect("join").expect("write");
        assert!(came == sent, "{} bytes came", came.len());
    }
}

#[test]
fn as_a_stream_it_ends_with_the_connection_and_stays_so() {
    for runtime in runtimes() {
        let (stream, mut peer) = connection();
        peer.write_all(b"all there is").expect("write");
        drop(peer);
        runtime.block_on(async {
            let mut receiver = receiver(stream);
            let mut next = async || poll_fn(|cx| Pin::new(&mut receiver).poll_next(cx)).await;
            let first = next().await.expect("something").expect("receive");
            assert_eq!(first.linear, b"all there is");
            assert!(next().await.is_none());
            assert!(next().await.is_none());
        });
    }
}

/// Writes until the window and both buffers are full; returns how much that was.
fn write_all_there_is_room_for(peer: &mut TcpStream) -> usize {
    peer.set_nonblocking(true).expect("non-blocking");
    let mut written = 0;
    loop {
        match peer.write(&[7; 64 << 10]) {
            Ok(len) => written += len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return written,
            Err(error) => panic!("write: {error}"),
        }
    }
}

#[test]
fn a_receiver_that_holds_its_limit_reads_nothing_until_fragments_are_recycled_elsewhere() {
    for runtime in runtimes() {
        let (stream, mut peer) = connection();
        runtime.block_on(async {
            let mut receiver = receiver(stream);
            let recycler = receiver.recycler();
            recycler.held.add(LIMIT);
            let written = write_all_there_is_room_for(&mut peer);
            // Not once is anything taken: the peer has no room.
            for _ in 0..100 {
                assert!(poll_once(receiver.receive()).is_pending());
                tokio::task::yield_now().await;
                assert!(peer.write(&[7]).is_err());
            }
            peer.shutdown(Shutdown::Write).expect("shut down");
            let task = tokio::spawn(async move { rest(&mut receiver).await.len() });
            tokio::task::yield_now().await;
            thread::spawn(move || recycler.held.remove(4096));
            assert_eq!(task.await.expect("join"), written);
        });
    }
}

#[test]
fn receives_that_are_given_up_have_received_nothing() {
    for runtime in runtimes() {
        let (stream, mut peer) = connection();
        let sent = bytes(1000);
        runtime.block_on(async {
            let mut receiver = receiver(stream);
            let mut came = Vec::new();
            for byte in sent.chunks(1) {
                // Nothing is there.
                for _ in 0..3 {
                    assert!(poll_once(receiver.receive()).is_pending());
                    tokio::task::yield_now().await;
                }
                peer.write_all(byte).expect("write");
                came.extend(receiver.receive().await.expect("receive").linear);
            }
            assert_eq!(came, sent);
        });
    }
}

#[test]
fn two_of_them_share_a_descriptor() {
    let [runtime, _] = runtimes();
    let (stream, mut peer) = connection();
    runtime.block_on(async {
        let limit = Limit::new(LIMIT);
        let [mut one, mut other] =
            [(); 2].map(|()| Receiver::new(&stream, limit).expect("a receiver"));
        assert!(poll_once(one.receive()).is_pending());
        peer.write_all(b"a").expect("write");
        assert_eq!(other.receive().await.expect("receive").linear, b"a");
        peer.write_all(b"b").expect("write");
        assert_eq!(one.receive().await.expect("receive").linear, b"b");
    });
}

#[test]
fn what_the_kernel_does_not_take_back_counts_as_held() {
    let [runtime, _] = runtimes();
    let (stream, _peer) = connection();
    runtime.block_on(async {
        let mut receiver = receiver(stream);
        receiver.recycler.held.add(4096);
        let never_given = Fragment::from_raw(rx::RawFragment {
            offset: 0,
            len: 1,
            token: 3,
            dmabuf_id: 1,
            socket: receiver.recycler.cookie,
        });
        receiver.recycle([never_given]).expect_err("not its own");
        assert_eq!(receiver.held(), 4096);
        let elsewhere = Fragment::from_raw(rx::RawFragment {
            offset: 0,
            len: 1,
            token: 3,
            dmabuf_id: 1,
            socket: receiver.recycler.cookie + 1,
        });
        receiver.recycle([elsewhere]).expect_err("not its own");
        assert_eq!(receiver.held(), 4096);
    });
}
