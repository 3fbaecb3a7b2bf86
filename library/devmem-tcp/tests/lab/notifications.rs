// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the kernel tells of a queue.

use devmem_tcp::ethtool::{Ethtool, Indirection, RssChange};
use devmem_tcp::zcrx::{Area, Copied, End, Event, InterfaceQueue, Notification, UserMemory};

use crate::payload::{Stream, send};
use crate::{Lab, MIB};

const BOTH: [Notification; 2] = [Notification::OutOfBuffers, Notification::Copied];

#[test]
#[ignore = "needs the lab"]
fn a_queue_without_buffers_notifies_and_goes_on_when_they_are_recycled() {
    let lab = Lab::find();
    let memory = UserMemory::create(8 * MIB).expect("memory");
    let config = lab.config().notify(BOTH, 0);
    let queue = InterfaceQueue::register(&config, Area::User(&memory)).expect("a queue");
    let (mut receiver, mut refill) = queue.start().expect("start");
    let (ours, theirs) = lab.connect();
    let sender = send(theirs, 5, 24 * MIB);
    receiver.receive_from(&ours).expect("receive");
    receiver
        .arm(Notification::OutOfBuffers)
        .expect_err("it has not come");

    let (mut stream, mut notified) = (Stream::new(5), 0);
    stream.receive(&mut receiver, &memory, |event, receiver, held| {
        let Event::Notification(Notification::OutOfBuffers) = event else {
            panic!("{event:?}");
        };
        notified += 1;
        refill.recycle(held.drain(..)).expect("recycle");
        receiver.arm(Notification::OutOfBuffers).expect("it came");
    });
    assert_eq!(stream.bytes, 24 * MIB as u64);
    // The memory was full at least twice.
    assert!(notified >= 2, "notified {notified} times");
    assert_eq!(receiver.copied(), Some(Copied::default()));
    sender.join().expect("send");
}

/// While it lives, TCP reaches queue 0.
struct Steered<'a>(&'a Lab);

impl<'a> Steered<'a> {
    fn elsewhere(lab: &'a Lab) -> Self {
        steer(lab, 0);
        Self(lab)
    }
}

impl Drop for Steered<'_> {
    fn drop(&mut self) {
        steer(self.0, self.0.queue);
    }
}

fn steer(lab: &Lab, queue: u32) {
    let change = RssChange {
        indirection: Some(Indirection::Queues(vec![queue])),
        ..RssChange::default()
    };
    Ethtool::new()
        .set_rss(lab.interface, &change)
        .expect("steering");
}

#[test]
#[ignore = "needs the lab"]
fn bytes_that_come_in_elsewhere_are_counted_and_told_once_until_that_is_armed() {
    let lab = Lab::find();
    let memory = UserMemory::create(16 * MIB).expect("memory");
    let _steered = Steered::elsewhere(&lab);
    let config = lab.config().notify(BOTH, 0);
    let queue = InterfaceQueue::register(&config, Area::User(&memory)).expect("a queue");
    let (mut receiver, mut refill) = queue.start().expect("start");
    for round in 1..=2 {
        let (ours, theirs) = lab.connect();
        let sender = send(theirs, 6, 4 * MIB);
        receiver.receive_from(&ours).expect("receive");
        let (mut stream, mut told, mut events) = (Stream::new(6), 0, Vec::new());
        'stream: loop {
            receiver.wait(None, &mut events).expect("events");
            for event in events.drain(..) {
                match event {
                    Event::Fragment { fragment, .. } => {
                        stream.take(&fragment, &memory);
                        refill.recycle([fragment]).expect("recycle");
                    }
                    Event::Notification(Notification::Copied) => told += 1,
                    Event::Ended {
                        end: End::Closed, ..
                    } => break 'stream,
                    other => panic!("{other:?}"),
                }
            }
            // The driver of a queue that nothing comes in on doesn't look into the ring.
            receiver.flush().expect("flush");
        }
        assert_eq!((stream.bytes, told), (4 * MIB as u64, 1));
        let copied = receiver.copied().expect("it is counted");
        // Bytes in an skb's linear part are not counted, such as those that TCP has collapsed into one.
        let [before, all] = [round - 1, round].map(|rounds| rounds * 4 * MIB as u64);
        assert!((before + 1..=all).contains(&copied.bytes), "{copied:?}");
        assert!(copied.count > 0);
        receiver.arm(Notification::Copied).expect("it came");
        sender.join().expect("send");
    }
}
