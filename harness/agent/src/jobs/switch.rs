// SPDX-License-Identifier: MIT OR Apache-2.0

//! Starting and ending a job from outside.

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Condvar, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;
use protocol::{Command, Failure};
use rustix::net::{Shutdown, shutdown};

use super::job::{Control, not_understood};
use crate::{failure, lock::lock};

/// Anything with a socket that a job may be blocked on.
pub(super) trait Watched: Send + Sync {
    /// The socket.
    fn socket(&self) -> BorrowedFd<'_>;
}

impl<T: AsFd + Send + Sync> Watched for T {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// Stops a job that may be blocked in a system call, by shutting down its sockets.
pub(super) struct Switch {
    job: &'static str,
    stopped: AtomicBool,
    finishing: AtomicBool,
    /// Whether the job must wait before it starts.
    waiting: Mutex<bool>,
    gone: Condvar,
    // Weak: a socket closes when its job drops it, not when the job is joined.
    sockets: Mutex<Vec<Weak<dyn Watched>>>,
}

impl Switch {
    /// `job` is the job's name, for errors.
    pub(super) fn new(job: &'static str) -> Arc<Self> {
        Self::with(job, false)
    }

    /// As [`Switch::new`], for a job that begins with [`Command::Go`].
    pub(super) fn waiting(job: &'static str) -> Arc<Self> {
        Self::with(job, true)
    }

    /// As [`Switch::new`], for a job that may be blocked on `socket` first.
    pub(super) fn watching(job: &'static str, socket: &Arc<impl Watched + 'static>) -> Arc<Self> {
        let switch = Self::new(job);
        switch.watch(socket);
        switch
    }

    fn with(job: &'static str, waiting: bool) -> Arc<Self> {
        Arc::new(Self {
            job,
            stopped: AtomicBool::new(false),
            finishing: AtomicBool::new(false),
            waiting: Mutex::new(waiting),
            gone: Condvar::new(),
            sockets: Mutex::default(),
        })
    }

    /// Waits until the job may start, or must end.
    pub(super) fn wait_for_go(&self) {
        let waiting = self
            .gone
            .wait_while(lock(&self.waiting), |waiting| *waiting);
        // Poisoning means that the guest is going down.
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets the job begin.
    pub(super) fn go(&self) {
        *lock(&self.waiting) = false;
        self.gone.notify_all();
    }

    /// Shuts `socket` down when the job is stopped, or at once if it already was.
    pub(super) fn watch<S: Watched + 'static>(&self, socket: &Arc<S>) {
        let socket: Arc<dyn Watched> = Arc::<S>::clone(socket);
        lock(&self.sockets).push(Arc::downgrade(&socket));
        if self.stopped() {
            hang_up(&*socket);
        }
    }

    /// Whether the job must end immediately. Errors from its shut-down sockets are then ignored.
    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// What ended the job early, if it was not stopped.
    pub(super) fn failure<T>(&self, result: Result<T>) -> Option<Failure> {
        let error = result.err().filter(|_| !self.stopped())?;
        Some(failure::from_error(&error))
    }

    /// Whether the job must end, gracefully or not.
    pub(super) fn finishing(&self) -> bool {
        self.finishing.load(Ordering::SeqCst) || self.stopped()
    }

    /// Ends the job at once.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.go();
        for socket in lock(&self.sockets).iter().filter_map(Weak::upgrade) {
            hang_up(&*socket);
        }
    }

    /// Ends the job gracefully.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Ordering::SeqCst);
        self.go();
    }
}

fn hang_up(socket: &dyn Watched) {
    // A socket without a peer returns ENOTCONN, but still wakes its readers
    // (net/ipv4/af_inet.c, inet_shutdown).
    let _ = shutdown(socket.socket(), Shutdown::Both);
}

impl Control for Switch {
    fn tell(&self, command: &Command) -> Result<()> {
        match command {
            Command::Stop => self.stop(),
            Command::Finish => self.finish(),
            Command::Go if *lock(&self.waiting) => self.go(),
            other => return Err(not_understood(self.job, other)),
        }
        Ok(())
    }
}

/// A switch, and what lives until the job is joined: the host may still be reading.
pub(super) struct Holding<T> {
    pub(super) switch: Arc<Switch>,
    pub(super) held: T,
}

impl<T: Send + Sync> Control for Holding<T> {
    fn tell(&self, command: &Command) -> Result<()> {
        self.switch.tell(command)
    }
}
