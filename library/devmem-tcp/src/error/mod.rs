// SPDX-License-Identifier: MIT OR Apache-2.0

//! What can go wrong: a type for each part of the crate, whose variants name the precondition that does
//! not hold, and one that is any of them.

mod bind;
mod common;
mod memory;
mod receive;
mod refusal;
mod request;
mod send;
mod steering;
#[cfg(feature = "zcrx")]
mod zcrx;

pub use bind::BindError;
pub use common::{BadControlMessage, OutOfRange, SystemCall};
pub use memory::MemoryError;
pub use receive::ReceiveError;
pub use refusal::Refusal;
pub use request::RequestError;
pub use send::SendError;
pub use steering::SteeringError;
#[cfg(feature = "zcrx")]
pub use zcrx::ZcrxError;

/// Result of several of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Any error of this crate. `?` converts the others to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel has not done, or not answered, what was asked of an interface.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Memory cannot be bound to a queue.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Memory cannot be allocated, mapped or looked up.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A socket cannot be received from.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// Memory cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A queue does not receive through io_uring.
    #[cfg(feature = "zcrx")]
    #[error(transparent)]
    Zcrx(#[from] ZcrxError),
    /// Flows do not reach a bound queue.
    #[error(transparent)]
    Steering(#[from] SteeringError),
}

impl Error {
    /// The kernel's answer, where the error carries one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Request(error) => error.refusal(),
            Self::Bind(error) => error.refusal(),
            Self::Memory(_) => None,
            Self::Receive(error) => error.refusal(),
            Self::Send(error) => error.refusal(),
            #[cfg(feature = "zcrx")]
            Self::Zcrx(error) => error.refusal(),
            Self::Steering(error) => error.refusal(),
        }
    }

    /// The errno behind the error, positive, if a system call or the kernel's netlink answer gave
    /// one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Request(error) => error.errno(),
            Self::Bind(error) => error.errno(),
            Self::Memory(error) => error.errno(),
            Self::Receive(error) => error.errno(),
            Self::Send(error) => error.errno(),
            #[cfg(feature = "zcrx")]
            Self::Zcrx(error) => error.errno(),
            Self::Steering(error) => error.errno(),
        }
    }

    /// The kernel's explanation in words, if it gave one.
    #[must_use]
    pub fn extack(&self) -> Option<&str> {
        self.refusal()?.extack.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_takes_no_more_than_two_cache_lines() {
        // A result as large as this is returned by each receive.
        assert!(
            size_of::<ReceiveError>() <= 64,
            "{}",
            size_of::<ReceiveError>()
        );
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }
}
