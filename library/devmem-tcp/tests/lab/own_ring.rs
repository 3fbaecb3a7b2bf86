// SPDX-License-Identifier: MIT OR Apache-2.0

//! A queue in a ring that does other things, too.

use std::time::Duration;

use devmem_tcp::zcrx::{Area, Outcome, Queue, UserMemory};
use io_uring::types::Timespec;
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::payload::{Stream, send};
use crate::{Lab, MIB};

const RECEIVE: u64 = 1;
const NOTHING: u64 = 2;
const TIMEOUT: u64 = 3;

#[test]
#[ignore = "needs the lab"]
fn a_queue_in_a_ring_of_ones_own_bears_other_requests_and_a_full_completion_queue() {
    let lab = Lab::find();
    let mut ring: IoUring<squeue::Entry, cqueue::Entry32> = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(64)
        .build(8)
        .expect("a ring");
    let memory = UserMemory::create(16 * MIB).expect("memory");
    let (queue, mut refill) =
        Queue::register(&ring, &lab.config(), Area::User(&memory)).expect("a queue");
    assert_eq!(queue.rx_buf_len(), 4096);
    let (ours, theirs) = lab.connect();
    let sender = send(theirs, 9, 16 * MIB);
    while rustix::io::ioctl_fionread(&ours).expect("FIONREAD") < 128 * 4096 {
        std::thread::yield_now();
    }

    let soon = Timespec::from(Duration::from_millis(1));
    let nothing = opcode::Nop::new().build().user_data(NOTHING);
    let timeout = opcode::Timeout::new(&soon).build().user_data(TIMEOUT);
    let receive = queue.receive(&ours, RECEIVE);
    let mut requests = vec![receive.clone(), timeout, nothing.clone()];
    let (mut stream, mut again, mut nothings, mut timeouts) = (Stream::new(9), 0, 0, 0);
    let mut closed = false;
    while !closed || timeouts == 0 {
        for request in requests.drain(..) {
            // SAFETY: `soon` lives on, and so does the socket.
            unsafe { ring.submission().push(&request) }.expect("there is room");
        }
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            // Completions that had no room wait in the kernel.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => panic!("io_uring_enter: {error}"),
        }
        for completion in ring.completion() {
            match completion.user_data() {
                NOTHING => {
                    assert_eq!(completion.result(), 0);
                    nothings += 1;
                    if nothings < 100 {
                        requests.push(nothing.clone());
                    }
                }
                TIMEOUT => {
                    assert_eq!(completion.result(), -libc::ETIME);
                    timeouts += 1;
                }
                RECEIVE => {
                    let more = cqueue::more(completion.flags());
                    match queue.outcome(completion) {
                        Outcome::Fragment(fragment) => {
                            stream.take(&fragment, &memory);
                            refill.recycle([fragment]).expect("recycle");
                            assert!(more);
                        }
                        Outcome::Again => {
                            again += 1;
                            requests.push(receive.clone());
                        }
                        Outcome::Closed => closed = true,
                        other => panic!("{other:?}"),
                    }
                }
                other => panic!("a completion of {other}"),
            }
        }
    }
    assert_eq!((stream.bytes, timeouts), (16 * MIB as u64, 1));
    assert!(again > 0, "the completion queue was never full");
    assert!(nothings > 0);
    assert_eq!(queue.copied().expect("it is counted").bytes, 0);
    sender.join().expect("send");
}
