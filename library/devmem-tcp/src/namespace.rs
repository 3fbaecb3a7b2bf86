// SPDX-License-Identifier: MIT OR Apache-2.0

//! Network namespaces.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{RequestError, SystemCall};

/// A network namespace (ip-netns(8)). It lives as long as a value of it does.
///
/// A socket belongs to the namespace of the thread that opens it, and so does all that is asked through it.
#[derive(Debug, Clone)]
pub struct Namespace {
    file: Arc<OwnedFd>,
}

impl Namespace {
    /// The namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// [`SystemCall`] if `/proc` does not show it.
    pub fn current() -> Result<Self, SystemCall> {
        Self::open("/proc/thread-self/ns/net")
    }

    /// The namespace that `ip netns add` gave this name.
    ///
    /// # Errors
    ///
    /// [`SystemCall`] if there is none, or no right to open it.
    pub fn named(name: &str) -> Result<Self, SystemCall> {
        Self::open(Path::new("/run/netns").join(name))
    }

    /// The namespace that a file refers to, as `/proc/<pid>/ns/net`.
    ///
    /// # Errors
    ///
    /// [`SystemCall`] if there is no such file, or no right to open it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SystemCall> {
        let file = File::open(path);
        let file = file.map_err(|error| SystemCall::new("open a network namespace", error))?;
        Ok(Self {
            file: Arc::new(file.into()),
        })
    }

    /// Runs `work` in the namespace, in a thread of its own: the calling thread stays where it is. This
    /// takes `CAP_SYS_ADMIN` in the namespace's user namespace and in the caller's.
    ///
    /// # Errors
    ///
    /// [`SystemCall`] if the namespace can't be entered, or there is no thread.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SystemCall> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || {
                move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(|errno| SystemCall::new("enter a network namespace", errno))?;
                Ok(work())
            });
            let thread = thread.map_err(|error| SystemCall::new("start a thread", error))?;
            match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Does something in a namespace, or where the calling thread is.
    pub(crate) fn run_in<T: Send, E: From<RequestError> + Send>(
        namespace: Option<&Self>,
        work: impl FnOnce() -> Result<T, E> + Send,
    ) -> Result<T, E> {
        match namespace {
            None => work(),
            Some(namespace) => namespace.run(work).map_err(RequestError::from)?,
        }
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A descriptor of a namespace, as `open_tree` or another process gave it. What it is shows when it is
/// entered.
impl From<OwnedFd> for Namespace {
    fn from(file: OwnedFd) -> Self {
        Self {
            file: Arc::new(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_does_not_exist_is_an_error() {
        let error = Namespace::named("no-such-namespace").expect_err("nobody made it");
        assert_eq!(error.errno(), Some(libc::ENOENT));
    }

    #[test]
    fn what_is_done_in_the_current_namespace_has_its_result_or_says_why_not() {
        let namespace = Namespace::current().expect("every thread has one");
        match namespace.run(|| 7) {
            Ok(result) => assert_eq!(result, 7),
            Err(error) => assert_eq!(error.errno(), Some(libc::EPERM)),
        }
    }
}
