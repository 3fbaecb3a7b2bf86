// SPDX-License-Identifier: MIT OR Apache-2.0

//! Several connections of one queue, and a full completion queue.

use std::time::Duration;

use devmem_tcp::zcrx::{
    Area, Connection, End, Event, InterfaceQueue, Receiver, Refill, UserMemory,
};

use crate::payload::{Stream, send};
use crate::{Lab, MIB};

/// Receives into `memory` until one of the connections ends; says which and how.
pub(crate) fn until_one_ends(
    receiver: &mut Receiver,
    refill: &mut Refill,
    memory: &UserMemory,
    streams: &mut [(Connection, Stream)],
) -> (Connection, End) {
    let mut ended = None;
    let mut events = Vec::new();
    loop {
        receiver.wait(None, &mut events).expect("events");
        for event in events.drain(..) {
            match event {
                Event::Fragment {
                    connection,
                    fragment,
                } => {
                    let stream = streams.iter_mut().find(|(one, _)| *one == connection);
                    let (_, stream) = stream.expect("a connection that was asked for");
                    stream.take(&fragment, memory);
                    refill.recycle([fragment]).expect("recycle");
                }
                Event::Ended { connection, end } => {
                    assert!(ended.is_none(), "two ended at once");
                    ended = Some((connection, end));
                }
                other => panic!("nobody asked for {other:?}"),
            }
        }
        if let Some(ended) = ended.take() {
            return ended;
        }
    }
}

#[test]
#[ignore = "needs the lab"]
fn one_connection_is_cancelled_and_another_goes_on_and_then_the_first_where_it_was() {
    let lab = Lab::find();
    let memory = UserMemory::create(16 * MIB).expect("memory");
    let queue = InterfaceQueue::register(&lab.config(), Area::User(&memory)).expect("a queue");
    let (mut receiver, mut refill) = queue.start().expect("start");
    let ((one, to_one), (other, to_other)) = (lab.connect(), lab.connect());
    let senders = [send(to_one, 1, 8 * MIB), send(to_other, 2, 8 * MIB)];

    let first = receiver.receive_from(&one).expect("receive");
    let second = receiver.receive_from(&other).expect("receive");
    let mut streams = [(first, Stream::new(1)), (second, Stream::new(2))];
    receiver.cancel(first).expect("cancel");
    let ended = until_one_ends(&mut receiver, &mut refill, &memory, &mut streams);
    assert!(
        matches!(ended, (which, End::Cancelled) if which == first),
        "{ended:?}"
    );
    let before = streams[0].1.bytes;
    assert!(before < 8 * MIB as u64, "all had come");

    let ended = until_one_ends(&mut receiver, &mut refill, &memory, &mut streams);
    assert!(
        matches!(ended, (which, End::Closed) if which == second),
        "{ended:?}"
    );
    assert_eq!(streams[1].1.bytes, 8 * MIB as u64);
    assert_eq!(streams[0].1.bytes, before, "it came after the end");
    // Whoever has ended can't be cancelled, and nobody is told of it.
    receiver.cancel(second).expect("cancel");

    streams[0].0 = receiver.receive_from(&one).expect("receive");
    let ended = until_one_ends(&mut receiver, &mut refill, &memory, &mut streams);
    assert!(
        matches!(ended, (which, End::Closed) if which == streams[0].0),
        "{ended:?}"
    );
    assert_eq!(streams[0].1.bytes, 8 * MIB as u64);
    senders
        .into_iter()
        .for_each(|sender| sender.join().expect("send"));
    let mut events = Vec::new();
    receiver
        .wait(Some(Duration::ZERO), &mut events)
        .expect("no events");
    assert!(events.is_empty(), "{events:?}");
}

#[test]
#[ignore = "needs the lab"]
fn a_completion_queue_that_is_full_ends_no_stream() {
    let lab = Lab::find();
    let memory = UserMemory::create(16 * MIB).expect("memory");
    let queue = InterfaceQueue::register_with(&lab.config(), Area::User(&memory), 64);
    let (mut receiver, mut refill) = queue.expect("a queue").start().expect("start");
    let (ours, theirs) = lab.connect();
    let sender = send(theirs, 3, 16 * MIB);
    // More has come than the completion queue has room for.
    while rustix::io::ioctl_fionread(&ours).expect("FIONREAD") < 128 * 4096 {
        std::thread::yield_now();
    }
    let connection = receiver.receive_from(&ours).expect("receive");
    let mut streams = [(connection, Stream::new(3))];
    let (_, end) = until_one_ends(&mut receiver, &mut refill, &memory, &mut streams);
    assert!(matches!(end, End::Closed), "{end:?}");
    assert_eq!(streams[0].1.bytes, 16 * MIB as u64);
    sender.join().expect("send");
}
