// SPDX-License-Identifier: MIT OR Apache-2.0

//! Wires: from a device to another one of this process, or to a socket.
//!
//! A device sends while it is locked, and its frames are queued. They are delivered after it has been
//! unlocked, by the thread that unlocked it, so that no thread holds locks of two devices. At most one thread delivers
//! what a device has sent: frames stay in order, and of two devices that answer each other neither is
//! entered again by its own delivery.

use std::{
    collections::VecDeque,
    io,
    os::unix::net::UnixDatagram,
    sync::{Arc, Mutex, Weak},
    thread,
    time::{Duration, SystemTime},
};

use tracing::{debug, warn};

use crate::{Port, lock, pcap::Capture};

/// Longer than any frame that QEMU sends.
const LONGEST: usize = 4096 + 65536;
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
}

/// Where a wire leads to.
#[derive(Debug)]
enum Far {
    Port(Weak<Port>),
    Socket(UnixDatagram),
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
    delivering: bool,
}

/// A device's end of a wire: what it has sent, and where that goes.
#[derive(Debug)]
pub(crate) struct End {
    queue: Mutex<Queue>,
    far: Far,
    capture: Option<Arc<Mutex<Capture>>>,
}

impl End {
    fn new(far: Far, capture: Option<Arc<Mutex<Capture>>>) -> Self {
        Self {
            queue: Mutex::default(),
            far,
            capture,
        }
    }

    /// Takes a frame from the device, which is locked.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        lock(&self.queue).frames.push_back(frame);
    }

    /// Delivers what the device has sent, which must not be locked.
    pub(crate) fn deliver(&self) {
        let mut delivers = false;
        loop {
            let mut queue = lock(&self.queue);
            if queue.delivering && !delivers {
                return;
            }
            let frame = queue.frames.pop_front();
            delivers = frame.is_some();
            queue.delivering = delivers;
            drop(queue);
            match frame {
                Some(frame) => self.carry(&frame),
                None => return,
            }
        }
    }

    fn carry(&self, frame: &[u8]) {
        capture(self.capture.as_deref(), frame);
        match &self.far {
            Far::Port(port) => {
                if let Some(port) = port.upgrade() {
                    port.receive(frame);
                }
            }
            Far::Socket(socket) => {
                if let Err(error) = socket.send(frame) {
                    warn!(%error, bytes = frame.len(), "a frame is lost");
                }
            }
        }
    }
}

/// Connects two devices, back to back.
///
/// # Errors
///
/// [`WireError`], if there is another wire.
pub fn connect(ends: [&Arc<Port>; 2], capture: Option<Capture>) -> Result<(), WireError> {
    let [one, other] = ends;
    if Arc::ptr_eq(one, other) {
        return Err(WireError::Loop);
    }
    let capture = capture.map(|capture| Arc::new(Mutex::new(capture)));
    for (from, to) in [(one, other), (other, one)] {
        from.plug(End::new(Far::Port(Arc::downgrade(to)), capture.clone()))?;
    }
    Ok(())
}

/// Connects a device with a socket, of which each datagram is a frame, as `-netdev dgram` has them.
///
/// # Errors
///
/// [`WireError`], if there is another wire or no thread.
pub fn connect_socket(
    port: &Arc<Port>,
    socket: UnixDatagram,
    capture: Option<Capture>,
) -> Result<(), WireError> {
    socket.set_nonblocking(false)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let capture = capture.map(|capture| Arc::new(Mutex::new(capture)));
    let far = Far::Socket(socket.try_clone()?);
    port.plug(End::new(far, capture.clone()))?;
    let port = Arc::downgrade(port);
    let builder = thread::Builder::new().name("cable".to_owned());
    builder.spawn(move || listen(&socket, &port, capture.as_deref()))?;
    Ok(())
}

/// Takes frames from a socket until it, or the device, is gone.
fn listen(socket: &UnixDatagram, port: &Weak<Port>, captures: Option<&Mutex<Capture>>) {
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
        let Some(port) = port.upgrade() else {
            debug!("the device is gone");
            return;
        };
        capture(captures, frame);
        port.receive(frame);
    }
}

fn capture(capture: Option<&Mutex<Capture>>, frame: &[u8]) {
    let Some(capture) = capture else {
        return;
    };
    if let Err(error) = lock(capture).add(frame, SystemTime::now()) {
        warn!(%error, "a frame is not in the capture");
    }
}
