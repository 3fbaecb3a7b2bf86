// SPDX-License-Identifier: MIT OR Apache-2.0

//! Device memory that a program holds: no more than its limit, and recycled where it came from.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use devmem_tcp::ReceiveError;
use devmem_tcp::netdev::RxBinding;
use devmem_tcp::rx;
use devmem_tcp::tokio::{Limit, Receiver};
use devmem_tcp::udmabuf::Udmabuf;

use crate::{Lab, MIB};

/// A page of the memory, which is a receive buffer.
const PAGE: usize = 4096;

/// Has a peer send; its end is closed after that.
fn send(mut to: TcpStream, bytes: usize) -> thread::JoinHandle<()> {
    thread::spawn(move || to.write_all(&vec![7; bytes]).expect("send"))
}

#[test]
#[ignore = "needs the lab"]
fn a_task_reads_no_more_than_its_limit_until_it_recycles() {
    const LIMIT: usize = 16 * PAGE;
    let lab = Lab::find();
    let memory = Udmabuf::new().create(16 * MIB).expect("memory");
    let binding = RxBinding::to(lab.interface).queue(lab.queue);
    let _binding = binding.bind(&memory).expect("bind");
    let (ours, theirs) = lab.connect();
    let sender = send(theirs, MIB);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    let total = runtime.block_on(async {
        let mut receiver = Receiver::new(ours, Limit::new(LIMIT)).expect("a receiver");
        let (mut total, mut kept) = (0, Vec::new());
        loop {
            if receiver.held() + PAGE <= LIMIT {
                let received = receiver.receive().await.expect("receive");
                if received.end_of_stream {
                    break total;
                }
                assert_eq!(received.linear, [0; 0], "split and steered");
                total += received.bytes();
                kept.extend(received.fragments);
                assert!(
                    (1..=LIMIT).contains(&receiver.held()),
                    "{}",
                    receiver.held()
                );
            } else {
                let more = tokio::time::timeout(Duration::ZERO, receiver.receive());
                more.await.expect_err("it waits");
                receiver.recycle(kept.drain(..)).expect("recycle");
                assert_eq!(receiver.held(), 0);
            }
        }
    });
    sender.join().expect("the sender");
    assert_eq!(total, MIB as u64);
}

#[test]
#[ignore = "needs the lab"]
fn a_fragment_is_recycled_by_no_other_connection() {
    let lab = Lab::find();
    let memory = Udmabuf::new().create(16 * MIB).expect("memory");
    let binding = RxBinding::to(lab.interface).queue(lab.queue);
    let _binding = binding.bind(&memory).expect("bind");
    let ends = [lab.connect(), lab.connect()];
    let [mut one, mut other] = ends.map(|(ours, theirs)| {
        send(theirs, PAGE).join().expect("the sender");
        rx::Receiver::new(ours)
    });
    let received = one.receive().expect("receive");
    let theirs = other.receive().expect("receive");
    // Tokens are numbered per socket: those of the two are alike.
    let count = received.fragments.len();
    assert!(count > 0, "{received:?}");
    let refused = other.recycle(received.fragments);
    assert!(
        matches!(refused, Err(ReceiveError::FragmentsElsewhere { count: it }) if it == count),
        "{refused:?}"
    );
    other.recycle(theirs.fragments).expect("its own");
}
