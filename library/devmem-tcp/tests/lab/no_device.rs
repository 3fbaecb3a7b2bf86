// SPDX-License-Identifier: MIT OR Apache-2.0

//! Without a device, over the loopback interface and a veth.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use devmem_tcp::namespace::Namespace;
use devmem_tcp::zcrx::{Area, Config, End, Event, InterfaceQueue, UserMemory};
use rustix::thread::{Pid, gettid};

use crate::connections::until_one_ends;
use crate::payload::{Stream, send};
use crate::{MIB, listen};

fn connect() -> (TcpStream, TcpStream) {
    let listener = listen(Ipv4Addr::LOCALHOST.into());
    let theirs = TcpStream::connect(listener.local_addr().expect("an address")).expect("connect");
    (listener.accept().expect("accept").0, theirs)
}

/// Our end of a connection over a veth, and the other one.
fn connect_over_veth() -> (TcpStream, TcpStream) {
    const SCRIPT: &str = "ip netns add far && ip link add near0 type veth peer name far0 netns far && \
        ip address add 198.51.100.1/24 dev near0 && ip -n far address add 198.51.100.2/24 dev far0 && \
        ip link set near0 up && ip -n far link set far0 up";
    let made = Command::new("sh").args(["-ec", SCRIPT]).status();
    assert!(made.expect("sh").success(), "{SCRIPT}");
    let listener = listen(Ipv4Addr::new(198, 51, 100, 1).into());
    let address = listener.local_addr().expect("an address");
    let far = Namespace::named("far").expect("a namespace");
    let theirs = far.run(|| TcpStream::connect(address));
    let theirs = theirs.expect("the namespace").expect("connect");
    (listener.accept().expect("accept").0, theirs)
}

fn queue(memory: &UserMemory) -> InterfaceQueue {
    InterfaceQueue::register(&Config::without_device(), Area::User(memory)).expect("no device")
}

#[test]
#[ignore = "needs the lab"]
fn whoever_recycles_receives_all_however_small_the_memory() {
    for (len, (ours, theirs)) in [
        (16 * MIB, connect()),
        (64 << 10, connect()),
        (64 << 10, connect_over_veth()),
    ] {
        let memory = UserMemory::create(len).expect("memory");
        let (mut receiver, mut refill) = queue(&memory).start().expect("start");
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
fn whoever_holds_all_memory_is_told_and_the_stream_goes_on_after_recycling() {
    let memory = UserMemory::create(MIB).expect("memory");
    let (mut receiver, mut refill) = queue(&memory).start().expect("start");
    let (ours, theirs) = connect();
    let sender = send(theirs, 8, 8 * MIB);
    receiver.receive_from(&ours).expect("receive");
    let (mut stream, mut starved) = (Stream::new(8), 0);
    stream.receive(&mut receiver, &memory, |event, _, held| {
        assert!(matches!(event, Event::Starved), "{event:?}");
        assert_eq!(held.len(), MIB / 4096, "not all memory was in use");
        starved += 1;
        refill.recycle(held.drain(..)).expect("recycle");
    });
    assert_eq!(stream.bytes, 8 * MIB as u64);
    assert!(starved >= 7, "starved {starved} times");
    sender.join().expect("send");
}

/// Waits until a thread of this process sleeps.
fn until_asleep(thread: Pid) {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let asleep = |stat: String| stat.rsplit(") ").next().is_some_and(|s| s.starts_with('S'));
    while !asleep(fs::read_to_string(&path).expect("a thread")) {
        thread::yield_now();
    }
}

#[test]
#[ignore = "needs the lab"]
fn a_thread_that_recycles_while_the_receiver_sleeps_wakes_it() {
    let memory = UserMemory::create(64 << 10).expect("memory");
    let (mut receiver, mut refill) = queue(&memory).start().expect("start");
    let (ours, theirs) = connect();
    let sender = send(theirs, 9, MIB);
    receiver.receive_from(&ours).expect("receive");
    let receiving = gettid();
    let (full, fragments) = mpsc::channel::<Vec<_>>();
    let recycler = thread::spawn(move || {
        for held in fragments {
            until_asleep(receiving);
            refill.recycle(held).expect("recycle");
        }
    });
    let (mut stream, mut starved) = (Stream::new(9), 0);
    stream.receive(&mut receiver, &memory, |event, _, held| {
        assert!(matches!(event, Event::Starved), "{event:?}");
        full.send(std::mem::take(held)).expect("a recycler");
        starved += 1;
    });
    assert_eq!(stream.bytes, MIB as u64);
    assert!(starved >= 15, "starved {starved} times");
    drop(full);
    recycler.join().expect("recycle");
    sender.join().expect("send");
}

#[test]
#[ignore = "needs the lab"]
fn of_two_connections_that_found_no_memory_one_is_cancelled_and_the_other_goes_on() {
    let memory = UserMemory::create(64 << 10).expect("memory");
    let (mut receiver, mut refill) = queue(&memory).start().expect("start");
    let mut held = Vec::new();
    let mut events = Vec::new();
    let mut connections = [10, 11].map(|seed| {
        let (ours, theirs) = connect();
        send(theirs, seed, 256 << 10).join().expect("send");
        let connection = receiver.receive_from(&ours).expect("receive");
        'connection: loop {
            receiver.wait(None, &mut events).expect("events");
            for event in events.drain(..) {
                match event {
                    Event::Fragment { fragment, .. } => held.push(fragment),
                    Event::Starved => break 'connection,
                    other => panic!("{other:?}"),
                }
            }
        }
        // The first has taken all.
        assert_eq!(held.len(), 16);
        (connection, Stream::new(seed))
    });
    receiver.cancel(connections[0].0).expect("cancel");
    refill.recycle(held).expect("recycle");
    let ends = [(); 2].map(|()| {
        let (which, end) = until_one_ends(&mut receiver, &mut refill, &memory, &mut connections);
        (which == connections[0].0, end)
    });
    assert!(
        matches!(ends, [(true, End::Cancelled), (false, End::Closed)]),
        "{ends:?}"
    );
    assert_eq!(connections[1].1.bytes, 256 << 10);
}

#[test]
#[ignore = "needs the lab"]
fn a_wait_ends_at_its_time_however_often_a_signal_wakes_it() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR1, nothing as *const () as libc::sighandler_t) };
    let memory = UserMemory::create(64 << 10).expect("memory");
    let (mut receiver, _refill) = queue(&memory).start().expect("start");
    // SAFETY: it only names this thread.
    let waiting = unsafe { libc::pthread_self() };
    let (ended, end) = mpsc::channel::<()>();
    // Not for ever, so that a wait that each of them begins anew does end.
    let signals = thread::spawn(move || {
        for _ in 0..100 {
            match end.recv_timeout(Duration::from_millis(20)) {
                // SAFETY: that thread is there: it joins this one.
                Err(mpsc::RecvTimeoutError::Timeout) => unsafe {
                    libc::pthread_kill(waiting, libc::SIGUSR1);
                },
                _ => break,
            }
        }
    });
    let (start, mut events) = (Instant::now(), Vec::new());
    let timeout = Duration::from_millis(200);
    receiver.wait(Some(timeout), &mut events).expect("events");
    let took = start.elapsed();
    drop(ended);
    signals.join().expect("signals");
    assert!(events.is_empty(), "{events:?}");
    assert!(
        (timeout..Duration::from_secs(1)).contains(&took),
        "{took:?}"
    );
}
