// SPDX-License-Identifier: MIT OR Apache-2.0

//! Without a device, over the loopback interface.

use std::net::{Ipv4Addr, TcpStream};

use devmem_tcp::ZcrxError;
use devmem_tcp::zcrx::{Area, Config, End, Event, InterfaceQueue, UserMemory};

use crate::connections::until_one_ends;
use crate::payload::{Stream, send};
use crate::{MIB, listen};

fn connect() -> (TcpStream, TcpStream) {
    let listener = listen(Ipv4Addr::LOCALHOST.into());
    let theirs = TcpStream::connect(listener.local_addr().expect("an address")).expect("connect");
    (listener.accept().expect("accept").0, theirs)
}

fn queue(memory: &UserMemory) -> InterfaceQueue {
    InterfaceQueue::register(&Config::without_device(), Area::User(memory)).expect("no device")
}

#[test]
#[ignore = "needs the lab"]
fn whoever_recycles_receives_all_however_small_the_memory() {
    for len in [16 * MIB, 64 << 10] {
        let memory = UserMemory::create(len).expect("memory");
        let (mut receiver, mut refill) = queue(&memory).start().expect("start");
        let (ours, theirs) = connect();
        let sender = send(theirs, 7, 8 * MIB);
        let connection = receiver.receive_from(&ours).expect("receive");
        let mut streams = [(connection, Stream::new(7))];
        let (_, end) = until_one_ends(&mut receiver, &mut refill, &memory, &mut streams);
        assert!(matches!(end, End::Closed), "{end:?}");
        assert_eq!(streams[0].1.bytes, 8 * MIB as u64);
        sender.join().expect("send");
    }
}

#[test]
#[ignore = "needs the lab"]
fn whoever_starves_it_is_told_and_goes_on_after_recycling() {
    let memory = UserMemory::create(MIB).expect("memory");
    let (mut receiver, mut refill) = queue(&memory).start().expect("start");
    let (ours, theirs) = connect();
    let sender = send(theirs, 8, 8 * MIB);
    receiver.receive_from(&ours).expect("receive");
    let (mut stream, mut held, mut starved) = (Stream::new(8), Vec::new(), 0);
    let mut events = Vec::new();
    'stream: loop {
        receiver.wait(None, &mut events).expect("events");
        for event in events.drain(..) {
            match event {
                Event::Fragment { fragment, .. } => {
                    stream.take(&fragment, &memory);
                    held.push(fragment);
                }
                Event::Ended {
                    end: End::Closed, ..
                } => break 'stream,
                Event::Ended {
                    end: End::Failed(ZcrxError::NoBufferToCopyInto { .. }),
                    ..
                } => {
                    assert_eq!(held.len(), MIB / 4096, "not all memory was in use");
                    starved += 1;
                    refill.recycle(held.drain(..)).expect("recycle");
                    receiver.flush().expect("flush");
                    receiver.receive_from(&ours).expect("receive");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(stream.bytes, 8 * MIB as u64);
    assert!(starved >= 7, "starved {starved} times");
    sender.join().expect("send");
}

#[test]
#[ignore = "needs the lab"]
fn a_connection_that_finds_all_memory_in_use_is_told_so_and_not_waited_for() {
    let memory = UserMemory::create(64 << 10).expect("memory");
    let (mut receiver, _refill) = queue(&memory).start().expect("start");
    let mut held = Vec::new();
    for seed in 10..12 {
        let (ours, theirs) = connect();
        send(theirs, seed, 256 << 10).join().expect("send");
        let asked = receiver.receive_from(&ours).expect("receive");
        let mut events = Vec::new();
        'connection: loop {
            receiver.wait(None, &mut events).expect("events");
            for event in events.drain(..) {
                match event {
                    Event::Fragment { fragment, .. } => held.push(fragment),
                    Event::Ended {
                        connection,
                        end: End::Failed(ZcrxError::NoBufferToCopyInto { .. }),
                    } => {
                        assert_eq!(connection, asked);
                        break 'connection;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        // The first has taken all.
        assert_eq!(held.len(), 16);
    }
}
