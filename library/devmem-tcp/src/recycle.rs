// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recycling received fragments (`SO_DEVMEM_DONTNEED`, `sock_devmem_dontneed` in
//! net/core/sock.c).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::error::{ReceiveError, Refusal, SystemCall};
use crate::fragment::Fragment;

/// Most ranges in one call (`MAX_DONTNEED_TOKENS`).
const MAX_RANGES: usize = 128;
/// Most fragments in one call (`MAX_DONTNEED_FRAGS`); the kernel stops at this many and ignores the
/// rest.
const MAX_FRAGMENTS: u32 = 1024;

/// `struct dmabuf_token` (include/uapi/linux/uio.h): a run of consecutive tokens.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    start: u32,
    count: u32,
}

/// Recycles fragments in as few calls as the kernel's limits allow. Its memory is used again from call
/// to call.
#[derive(Debug, Default)]
pub struct Recycler {
    tokens: Vec<u32>,
    batch: Vec<Run>,
}

impl Recycler {
    /// A recycler.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Recycles fragments that came from `socket`, in any order: the NIC can use the memory again.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::FragmentsElsewhere`] if some came from another socket, [`ReceiveError::TokensNotTaken`] if the
    /// kernel knew fewer on this one, [`ReceiveError::KernelTooOld`], [`ReceiveError::SystemCall`] if `socket` is not a
    /// TCP socket. The NIC then lacks the memory until the connection closes.
    pub fn recycle(
        &mut self,
        socket: impl AsFd,
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Result<(), ReceiveError> {
        let socket = socket.as_fd();
        self.recycle_to(socket, cookie(socket), fragments)
    }

    /// As [`Recycler::recycle`], to a socket whose cookie is known.
    pub(crate) fn recycle_to(
        &mut self,
        socket: BorrowedFd<'_>,
        cookie: u64,
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Result<(), ReceiveError> {
        self.tokens.clear();
        let mut foreign = 0;
        for fragment in fragments {
            match fragment.token_of(cookie) {
                Some(token) => self.tokens.push(token),
                None => foreign += 1,
            }
        }
        let given = self.tokens.len();
        let mut taken = 0;
        self.batches(|runs| {
            taken += dontneed(socket, runs)?;
            Ok(())
        })?;
        if taken != given {
            Err(ReceiveError::TokensNotTaken { taken, given })
        } else if foreign > 0 {
            Err(ReceiveError::FragmentsElsewhere { count: foreign })
        } else {
            Ok(())
        }
    }

    /// Joins neighbours, and hands out batches within the kernel's limits.
    fn batches(
        &mut self,
        mut each: impl FnMut(&[Run]) -> Result<(), ReceiveError>,
    ) -> Result<(), ReceiveError> {
        self.tokens.sort_unstable();
        self.batch.clear();
        let mut fragments = 0;
        for &token in &self.tokens {
            let follows = self
                .batch
                .last()
                .is_some_and(|run| run.start.checked_add(run.count) == Some(token));
            if fragments == MAX_FRAGMENTS || (!follows && self.batch.len() == MAX_RANGES) {
                each(&self.batch)?;
                self.batch.clear();
                fragments = 0;
            }
            match self.batch.last_mut() {
                Some(run) if follows => run.count += 1,
                _ => self.batch.push(Run {
                    start: token,
                    count: 1,
                }),
            }
            fragments += 1;
        }
        if self.batch.is_empty() {
            Ok(())
        } else {
            each(&self.batch)
        }
    }
}

/// What tells a socket from all others (`SO_COOKIE`); 0 of what is no socket.
pub(crate) fn cookie(socket: BorrowedFd<'_>) -> u64 {
    rustix::net::sockopt::socket_cookie(socket).unwrap_or(0)
}

/// Returns how many fragments the kernel took.
fn dontneed(socket: BorrowedFd<'_>, runs: &[Run]) -> Result<usize, ReceiveError> {
    let len = size_of_val(runs) as libc::socklen_t;
    // SAFETY: the option's value is an array of `struct dmabuf_token`, which `Run` is laid out as;
    // `len` is its length.
    let taken = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_DEVMEM_DONTNEED,
            runs.as_ptr().cast(),
            len,
        )
    };
    usize::try_from(taken).map_err(|_| refused(std::io::Error::last_os_error()))
}

/// What an errno of `SO_DEVMEM_DONTNEED` means.
fn refused(error: std::io::Error) -> ReceiveError {
    match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => ReceiveError::KernelTooOld {
            refusal: Refusal::from_errno(libc::ENOPROTOOPT),
        },
        _ => SystemCall::new("SO_DEVMEM_DONTNEED", error).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn batches(tokens: &[u32]) -> Vec<Vec<Run>> {
        let mut batches = Vec::new();
        let tokens = tokens.to_vec();
        let mut recycler = Recycler {
            tokens,
            batch: Vec::new(),
        };
        recycler
            .batches(|runs| {
                batches.push(runs.to_vec());
                Ok(())
            })
            .expect("collecting cannot fail");
        batches
    }

    fn expand(batches: &[Vec<Run>]) -> Vec<u32> {
        batches
            .iter()
            .flatten()
            .flat_map(|run| (0..run.count).map(|n| run.start + n))
            .collect()
    }

    /// Tokens as the kernel's id allocator gives them: mostly runs, with holes, in any order.
    fn tokens() -> impl Strategy<Value = Vec<u32>> {
        let runs = proptest::collection::btree_set(
            prop_oneof![0u32..3000, (u32::MAX - 50)..=u32::MAX],
            0..3000,
        );
        runs.prop_map(|set: BTreeSet<u32>| set.into_iter().collect::<Vec<_>>())
            .prop_shuffle()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_token_is_recycled_once_and_the_limits_hold(tokens in tokens()) {
            let batches = batches(&tokens);
            let mut sorted = tokens;
            sorted.sort_unstable();
            prop_assert_eq!(expand(&batches), sorted);
            for batch in &batches {
                prop_assert!(!batch.is_empty());
                prop_assert!(batch.len() <= MAX_RANGES);
                prop_assert!(batch.iter().map(|run| run.count).sum::<u32>() <= MAX_FRAGMENTS);
                for pair in batch.windows(2) {
                    prop_assert!(pair[0].start + pair[0].count < pair[1].start, "neighbours were not joined");
                }
            }
        }
    }

    #[test]
    fn a_thousand_and_twenty_four_consecutive_tokens_are_one_run_in_one_call() {
        let tokens: Vec<u32> = (10..1034).rev().collect();
        assert_eq!(
            batches(&tokens),
            [vec![Run {
                start: 10,
                count: 1024
            }]]
        );
        let tokens: Vec<u32> = (10..1035).collect();
        assert_eq!(
            batches(&tokens),
            [
                vec![Run {
                    start: 10,
                    count: 1024
                }],
                vec![Run {
                    start: 1034,
                    count: 1
                }]
            ]
        );
    }

    #[test]
    fn a_hundred_and_twenty_nine_scattered_tokens_are_two_calls() {
        let tokens: Vec<u32> = (0..129).map(|n| n * 2).collect();
        assert_eq!(
            batches(&tokens).iter().map(Vec::len).collect::<Vec<_>>(),
            [128, 1]
        );
    }

    #[test]
    fn a_kernel_that_does_not_know_the_option_is_too_old_and_another_errno_is_not_its_age() {
        let meaning = |errno| refused(std::io::Error::from_raw_os_error(errno));
        let old = meaning(libc::ENOPROTOOPT);
        assert!(old.to_string().contains("Linux 6.12"), "{old}");
        let other = meaning(libc::EBADF);
        assert!(matches!(other, ReceiveError::SystemCall(_)), "{other:?}");
        assert_eq!(
            (old.errno(), other.errno()),
            (Some(libc::ENOPROTOOPT), Some(libc::EBADF))
        );
    }

    #[test]
    fn a_token_given_twice_is_passed_on_twice_so_that_the_kernel_count_shows_it() {
        assert_eq!(expand(&batches(&[7, 7])), [7, 7]);
    }
}
