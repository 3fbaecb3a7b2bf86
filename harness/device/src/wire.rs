// SPDX-License-Identifier: MIT OR Apache-2.0

//! Wires: from a device to another one of this process, or to a socket.
//!
//! A device sends while it is locked, and its frames are queued (`turns`).
//!
//! On a link, what has to wait is delivered by a thread of the wire's end, in the same way. What comes from a
//! socket is queued likewise: the frame's check sequence, which a link may make a wrong one, does not cross it.

use std::{
    collections::VecDeque,
    io, iter,
    os::unix::net::UnixDatagram,
    sync::{Arc, Condvar, Mutex, PoisonError, Weak},
    thread,
    time::{Duration, SystemTime},
};

use tracing::{debug, warn};

use crate::{
    Port, alarm,
    link::{Fates, Link},
    lock,
    pcap::Capture,
    transit::{Arrival, Transit},
    turns::{Turns, deliver},
};

/// Longer than any frame that QEMU sends.
const LONGEST: usize = 4096 + 65536;
/// A frame on a wire has at least so many bytes, besides its check sequence (IEEE 802.3, 3.2.8).
const SHORTEST: usize = 60;
/// Most frames that come at once: a device does nothing else meanwhile.
const BURST: usize = 32;
/// How long a frame waits for the other end of a socket. QEMU takes none while its guest is stopped.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why there is no wire.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A device has one end only.
    #[error("the device has a wire already")]
    Taken,

    /// The wire would lead back.
    #[error("both ends of the wire are at the same device")]
    Loop,

    /// There is no thread, or the socket can't be set up.
    #[error("the wire's socket can't be used: {0}")]
    Socket(#[from] io::Error),

    /// What arrives later would never be delivered.
    #[error("the wire has no thread: {0}")]
    Thread(io::Error),
}

/// Where a wire leads to.
#[derive(Debug)]
enum Far {
    Port(Weak<Port>),
    Socket(UnixDatagram),
}

/// Which directions of a wire to a socket pass its link here: what becomes of the frames is as on a wire within the
/// process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Half {
    /// Both: the other end of the socket has no link. The device is the first end.
    #[default]
    Both,
    /// What comes to the device, which is the first end. The process with the second does the same.
    First,
    /// What comes to the device, which is the second end.
    Second,
}

/// What a device has sent, and what is still to be delivered of it.
#[derive(Debug)]
enum Sent {
    /// On a plain wire: all of it, now.
    Plain(VecDeque<Vec<u8>>),
    /// On a link: what has arrived.
    Link(Box<Transit>),
}

impl Sent {
    fn over(link: &Link, fates: Fates) -> Self {
        match link.is_plain() {
            true => Self::plain(),
            false => Self::Link(Box::new(Transit::new(*link, fates))),
        }
    }

    fn plain() -> Self {
        Self::Plain(VecDeque::new())
    }

    fn push(&mut self, frame: Vec<u8>) {
        match self {
            Self::Plain(frames) => frames.push_back(frame),
            Self::Link(transit) => transit.send(frame, alarm::now()),
        }
    }

    fn pop(&mut self) -> Option<Arrival> {
        match self {
            Self::Plain(frames) => frames.pop_front().map(Arrival::whole),
            Self::Link(transit) => transit.arrive(alarm::now()),
        }
    }

    /// When the wire's thread delivers something. A plain wire has none.
    fn deadline(&self) -> Option<u64> {
        match self {
            Self::Plain(_) => None,
            Self::Link(transit) => transit.deadline(),
        }
    }
}

#[derive(Debug)]
struct Queue {
    sent: Sent,
    /// When the wire's thread looks again by itself.
    wakes: Option<u64>,
    ended: bool,
}

/// A device's end of a wire, or a socket's: what it has sent, and where that goes.
#[derive(Debug)]
pub(crate) struct End {
    queue: Mutex<Turns<Queue>>,
    /// Tells the wire's thread to look again.
    earlier: Condvar,
    far: Far,
    capture: Option<Arc<Mutex<Capture>>>,
}

impl End {
    fn new(sent: Sent, far: Far, capture: Option<Arc<Mutex<Capture>>>) -> Self {
        let queue = Queue {
            sent,
            wakes: None,
            ended: false,
        };
        Self {
            queue: Turns::new(queue),
            earlier: Condvar::new(),
            far,
            capture,
        }
    }

    /// Takes a frame from the device, which is locked.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        lock(&self.queue).queue.sent.push(frame);
    }

    /// Delivers what the device has sent and has arrived. The device must not be locked.
    pub(crate) fn deliver(&self) {
        let burst = |queue: &mut Queue| {
            let sent = &mut queue.sent;
            let burst: Vec<_> = iter::from_fn(|| sent.pop()).take(BURST).collect();
            (!burst.is_empty()).then_some(burst)
        };
        let carry = |burst: Vec<_>| self.carry(&burst);
        let rest = |queue: &Queue| self.leave_rest(queue);
        deliver(&self.queue, burst, carry, rest);
    }

    /// Leaves what has not arrived yet to the wire's thread.
    fn leave_rest(&self, queue: &Queue) {
        let is_earlier = |deadline| queue.wakes.is_none_or(|wakes| deadline < wakes);
        if queue.sent.deadline().is_some_and(is_earlier) {
            self.earlier.notify_one();
        }
    }

    /// Starts the thread that delivers what arrives later, on a link.
    fn start(self: &Arc<Self>) -> Result<(), WireError> {
        if matches!(lock(&self.queue).queue.sent, Sent::Plain(_)) {
            return Ok(());
        }
        let end = Arc::clone(self);
        spawn("wire", move || {
            while end.wait() {
                end.deliver();
            }
        })
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        lock(&self.queue).queue.ended = true;
        self.earlier.notify_one();
    }

    /// Waits until something arrives that no other thread delivers. Returns `false` at the end.
    fn wait(&self) -> bool {
        let mut turns = lock(&self.queue);
        while !turns.queue.ended {
            let deadline = match turns.delivering {
                true => None,
                false => turns.queue.sent.deadline(),
            };
            let left = deadline.map(|deadline| deadline.saturating_sub(alarm::now()));
            turns.queue.wakes = deadline;
            turns = match left {
                Some(0) => {
                    // Awake: it looks before it waits again.
                    turns.queue.wakes = Some(0);
                    return true;
                }
                Some(left) => {
                    let left = Duration::from_nanos(left);
                    let waited = self.earlier.wait_timeout(turns, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.earlier.wait(turns);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        false
    }

    fn carry(&self, arrivals: &[Arrival]) {
        for Arrival { frame, .. } in arrivals {
            self.capture(frame);
        }
        match &self.far {
            Far::Port(port) => {
                if let Some(port) = port.upgrade() {
                    port.receive(arrivals);
                }
            }
            Far::Socket(socket) => {
                // A damaged one is dropped as a NIC would: nothing says there that it is damaged.
                for Arrival { frame, .. } in arrivals.iter().filter(|arrival| !arrival.damaged) {
                    if let Err(error) = socket.send(frame) {
                        warn!(%error, bytes = frame.len(), "a frame is lost");
                    }
                }
            }
        }
    }

    fn capture(&self, frame: &[u8]) {
        let Some(capture) = &self.capture else {
            return;
        };
        if let Err(error) = lock(capture).add(frame, SystemTime::now()) {
            warn!(%error, "a frame is not in the capture");
        }
    }
}

/// Connects two devices, back to back, by a link. What is captured is what arrives.
///
/// # Errors
///
/// [`WireError`], if there is another wire or no thread.
pub fn connect(
    ends: [&Arc<Port>; 2],
    link: &Link,
    capture: Option<Capture>,
) -> Result<(), WireError> {
    let [one, other] = ends;
    if Arc::ptr_eq(one, other) {
        return Err(WireError::Loop);
    }
    let capture = capture.map(|capture| Arc::new(Mutex::new(capture)));
    for ((from, to), fates) in [(one, other), (other, one)].into_iter().zip(link.fates()) {
        let far = Far::Port(Arc::downgrade(to));
        let end = Arc::new(End::new(Sent::over(link, fates), far, capture.clone()));
        from.plug(Arc::clone(&end))?;
        end.start()?;
    }
    Ok(())
}

/// Connects a device by a link with a socket, of which each datagram is a frame, as `-netdev dgram` has them. What is
/// captured is what arrives here, and what leaves for the socket.
///
/// # Errors
///
/// [`WireError`], if there is another wire or no thread.
pub fn connect_socket(
    port: &Arc<Port>,
    socket: UnixDatagram,
    link: &Link,
    half: Half,
    capture: Option<Capture>,
) -> Result<(), WireError> {
    socket.set_nonblocking(false)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let capture = capture.map(|capture| Arc::new(Mutex::new(capture)));
    let [of_first, of_second] = link.fates();
    let (sent, coming) = match half {
        Half::Both => (Sent::over(link, of_first), of_second),
        Half::First => (Sent::plain(), of_second),
        Half::Second => (Sent::plain(), of_first),
    };
    let far = Far::Socket(socket.try_clone()?);
    let near = Arc::new(End::new(sent, far, capture.clone()));
    port.plug(Arc::clone(&near))?;
    near.start()?;
    let to = Far::Port(Arc::downgrade(port));
    let far = Arc::new(End::new(Sent::over(link, coming), to, capture));
    far.start()?;
    let port = Arc::downgrade(port);
    spawn("cable", move || {
        listen(&socket, &port, &far);
        far.end();
    })
}

/// Takes frames from a socket until it, or the device, is gone.
fn listen(socket: &UnixDatagram, port: &Weak<Port>, end: &End) {
    let mut buffer = vec![0; LONGEST];
    loop {
        let frame = match socket.recv(&mut buffer) {
            // What the other end sends when it shuts down.
            Ok(0) => continue,
            Ok(len) => buffer.get(..len).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                warn!(%error, "nothing more comes from the wire");
                return;
            }
        };
        if port.strong_count() == 0 {
            debug!("the device is gone");
            return;
        }
        let mut frame = frame.to_vec();
        // QEMU's NICs leave that to the receiver (net_peer_needs_padding() in net/net.c).
        frame.resize(frame.len().max(SHORTEST), 0);
        end.send(frame);
        end.deliver();
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), WireError> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(run).map(drop).map_err(WireError::Thread)
}
