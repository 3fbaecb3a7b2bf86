// SPDX-License-Identifier: MIT OR Apache-2.0

//! More than one area.

use devmem_tcp::udmabuf::Udmabuf;
use devmem_tcp::zcrx::{Area, End, Event, InterfaceQueue, UserMemory};

use crate::payload::{Stream, send};
use crate::{Lab, MIB};

#[test]
#[ignore = "needs the lab"]
fn fragments_are_in_both_areas_and_their_bytes_in_the_one_that_they_name() {
    let lab = Lab::find();
    let areas = [MIB, 16 * MIB].map(|len| UserMemory::create(len).expect("memory"));
    let mut queue =
        InterfaceQueue::register(&lab.config(), Area::User(&areas[0])).expect("a queue");
    // The refill ring has as many entries as the first area needs.
    let number = queue.add_area(Area::User(&areas[1])).expect("an area");
    assert_eq!(number, 1);
    let dmabuf = Udmabuf::new().create(MIB).expect("a dma-buf");
    queue
        .add_area(Area::dmabuf(&dmabuf))
        .expect_err("of another kind");
    let (mut receiver, mut refill) = queue.start().expect("start");

    let (ours, theirs) = lab.connect();
    let sender = send(theirs, 4, 16 * MIB);
    receiver.receive_from(&ours).expect("receive");
    let (mut stream, mut of_area, mut events) = (Stream::new(4), [0_u64; 2], Vec::new());
    'stream: loop {
        receiver.wait(None, &mut events).expect("events");
        for event in events.drain(..) {
            match event {
                Event::Fragment { fragment, .. } => {
                    let area = fragment.area() as usize;
                    stream.take(&fragment, &areas[area]);
                    of_area[area] += 1;
                    refill.recycle([fragment]).expect("recycle");
                }
                Event::Ended {
                    end: End::Closed, ..
                } => break 'stream,
                other => panic!("{other:?}"),
            }
        }
        while refill.waiting() > 0 {
            receiver.flush().expect("flush");
            refill.recycle([]).expect("recycle");
        }
    }
    assert_eq!(stream.bytes, 16 * MIB as u64);
    assert!(of_area[0] > 0 && of_area[1] > 0, "{of_area:?}");
    sender.join().expect("send");
}
