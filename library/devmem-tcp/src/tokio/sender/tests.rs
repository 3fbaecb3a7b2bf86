// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::super::test::{bytes, poll_once, runtimes};
use super::*;

const LIMIT: usize = 256 << 10;

/// Bytes that stay, and their "offset".
fn memory(len: usize) -> (&'static [u8], u64) {
    let bytes = bytes(len).leak();
    (bytes, bytes.as_ptr().expose_provenance() as u64)
}

fn sender() -> (Sender<TcpStream>, TcpStream) {
    let (sender, peer) = tx::Sender::ordinary();
    (Sender::new(sender, LIMIT).expect("a sender"), peer)
}

fn total(done: &[Completion]) -> usize {
    done.iter().map(|done| done.len).sum()
}

/// Sends until it would have to wait; returns how much that was.
fn fill(
    sender: &mut Sender<TcpStream>,
    offset: u64,
    len: usize,
    done: &mut Vec<Completion>,
) -> usize {
    let mut sent = 0;
    while let Poll::Ready(accepted) = poll_once(sender.send(offset + sent as u64, len - sent, done))
    {
        sent += accepted.expect("send");
        assert!(sent < len, "the peer takes everything");
    }
    sent
}

#[test]
fn all_that_is_sent_arrives_and_completes_and_never_more_than_the_limit_is_in_flight() {
    for runtime in runtimes() {
        let (bytes, offset) = memory(8 << 20);
        runtime.block_on(async {
            let (mut sender, mut peer) = sender();
            let reader = thread::spawn(move || {
                let mut came = Vec::new();
                peer.read_to_end(&mut came).map(|_| came)
            });
            let (mut done, mut completed, mut sent) = (Vec::new(), 0, 0);
            while sent < bytes.len() {
                let more = sender.send(offset + sent as u64, bytes.len() - sent, &mut done);
                sent += more.await.expect("send");
                assert!(sender.in_flight() <= LIMIT);
                completed += total(&done);
                done.clear();
                assert_eq!(completed + sender.in_flight(), sent);
            }
            sender.flush(&mut done).await.expect("completions");
            assert_eq!((completed + total(&done), sender.in_flight()), (sent, 0));
            sender.finish().expect("shut down");
            let came = reader.join().expect("join").expect("read");
            assert!(came == bytes, "{} bytes came", came.len());
        });
    }
}

#[test]
fn a_sender_that_waits_for_its_peer_is_not_woken_in_vain_after_completions() {
    for runtime in runtimes() {
        let (bytes, offset) = memory(8 << 20);
        runtime.block_on(async {
            let (mut sender, mut peer) = sender();
            set_socket_recv_buffer_size(&peer, 64 << 10).expect("SO_RCVBUF");
            let mut done = Vec::new();
            // Completions have come, which is what the runtime takes for an end.
            sender.send(offset, 1000, &mut done).await.expect("send");
            sender.flush(&mut done).await.expect("completion");
            assert_eq!(done.len(), 1);
            let mut sent = 1000;
            for _ in 0..10 {
                sent += fill(
                    &mut sender,
                    offset + sent as u64,
                    bytes.len() - sent,
                    &mut done,
                );
                tokio::task::yield_now().await;
            }
            let polls = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&polls);
            let waiting = tokio::spawn(async move {
                let more = {
                    let mut more = Box::pin(sender.send(offset + sent as u64, 1, &mut done));
                    let counted = poll_fn(|cx| {
                        count.fetch_add(1, Ordering::Relaxed);
                        more.as_mut().poll(cx)
                    });
                    counted.await.expect("send")
                };
                sender.flush(&mut done).await.expect("completions");
                (sent + more, total(&done))
            });
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            let polls = polls.load(Ordering::Relaxed);
            assert!(polls < 20, "{polls} polls");
            // The peer reads, and all completes.
            let reader = thread::spawn(move || {
                let mut came = vec![0; sent + 1];
                peer.read_exact(&mut came).map(|()| came)
            });
            assert_eq!(waiting.await.expect("join"), (sent + 1, sent + 1));
            let came = reader.join().expect("join").expect("read");
            assert!(came == bytes[..=sent]);
        });
    }
}

#[test]
fn sends_that_are_given_up_have_sent_nothing() {
    for runtime in runtimes() {
        let (bytes, offset) = memory(8 << 20);
        runtime.block_on(async {
            let (mut sender, mut peer) = sender();
            set_socket_recv_buffer_size(&peer, 64 << 10).expect("SO_RCVBUF");
            let (mut done, mut sent, mut came) = (Vec::new(), 0, Vec::new());
            for _ in 0..20 {
                sent += fill(
                    &mut sender,
                    offset + sent as u64,
                    bytes.len() - sent,
                    &mut done,
                );
                tokio::task::yield_now().await;
                let mut piece = vec![0; (sent - came.len()).min(50_000)];
                peer.read_exact(&mut piece).expect("read");
                came.extend(piece);
            }
            let rest = thread::spawn(move || peer.read_to_end(&mut came).map(|_| came));
            sender.flush(&mut done).await.expect("completions");
            sender.finish().expect("shut down");
            let came = rest.join().expect("join").expect("read");
            assert!(came == bytes[..sent], "{} of {sent} bytes came", came.len());
            assert_eq!(total(&done), sent);
        });
    }
}

#[test]
fn a_peer_that_is_gone_completes_everything_and_is_an_error_then() {
    for runtime in runtimes() {
        let (bytes, offset) = memory(8 << 20);
        runtime.block_on(async {
            let (mut sender, peer) = sender();
            set_socket_recv_buffer_size(&peer, 64 << 10).expect("SO_RCVBUF");
            let mut done = Vec::new();
            let sent = fill(&mut sender, offset, bytes.len(), &mut done);
            // With unread data that resets the connection, while the sender waits.
            let task = tokio::spawn(async move {
                sender
                    .flush(&mut done)
                    .await
                    .expect("a reset completes everything");
                (sender, done)
            });
            tokio::task::yield_now().await;
            drop(peer);
            let (mut sender, mut done) = task.await.expect("join");
            assert_eq!(total(&done), sent);
            let error = loop {
                if let Err(error) = sender.send(offset, 1, &mut done).await {
                    break error;
                }
            };
            assert!(
                matches!(error.errno(), Some(libc::EPIPE | libc::ECONNRESET)),
                "got {error:?}"
            );
        });
    }
}

#[test]
fn nothing_is_sent_and_flushed_at_once() {
    let [runtime, _] = runtimes();
    runtime.block_on(async {
        let (mut sender, _peer) = sender();
        let mut done = Vec::new();
        assert_eq!(sender.send(0, 0, &mut done).await.expect("nothing"), 0);
        sender.flush(&mut done).await.expect("nothing");
        sender.complete(&mut done).await.expect("nothing");
        assert_eq!(done, []);
    });
}
