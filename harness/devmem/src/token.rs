// SPDX-License-Identifier: MIT OR Apache-2.0

//! Giving received fragments back to the NIC (`SO_DEVMEM_DONTNEED`, `sock_devmem_dontneed` in
//! net/core/sock.c).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::error::{Error, Result};

/// The kernel's name for a fragment that the application holds. It is valid on the socket that the
/// fragment came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

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

/// Returns tokens in as few calls as the kernel's limits allow. Its memory is used again from call
/// to call.
#[derive(Debug, Default)]
pub struct TokenReturner {
    sorted: Vec<u32>,
    batch: Vec<Run>,
}

impl TokenReturner {
    /// A returner.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the fragments behind `tokens` back; the memory belongs to the NIC again. The order of
    /// the tokens is free.
    ///
    /// # Errors
    ///
    /// [`Error::TokensNotTaken`] if the kernel knew fewer on this socket, [`Error::Io`] if `socket`
    /// is not a TCP socket or the kernel has no device memory TCP (`ENOPROTOOPT`).
    pub fn return_tokens(&mut self, socket: impl AsFd, tokens: &[Token]) -> Result<()> {
        let mut taken = 0;
        self.batches(tokens, |runs| {
            taken += dontneed(socket.as_fd(), runs)?;
            Ok(())
        })?;
        if taken == tokens.len() {
            Ok(())
        } else {
            Err(Error::TokensNotTaken {
                taken,
                given: tokens.len(),
            })
        }
    }

    /// Joins neighbours, and hands out batches within the kernel's limits.
    fn batches(
        &mut self,
        tokens: &[Token],
        mut each: impl FnMut(&[Run]) -> Result<()>,
    ) -> Result<()> {
        self.sorted.clear();
        self.sorted.extend(tokens.iter().map(|token| token.0));
        self.sorted.sort_unstable();
        self.batch.clear();
        let mut fragments = 0;
        for &token in &self.sorted {
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

/// Returns how many fragments the kernel took.
fn dontneed(socket: BorrowedFd<'_>, runs: &[Run]) -> Result<usize> {
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
    usize::try_from(taken)
        .map_err(|_| Error::io("SO_DEVMEM_DONTNEED", std::io::Error::last_os_error()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn batches(tokens: &[u32]) -> Vec<Vec<Run>> {
        let tokens: Vec<Token> = tokens.iter().copied().map(Token).collect();
        let mut batches = Vec::new();
        TokenReturner::new()
            .batches(&tokens, |runs| {
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
        fn every_token_is_returned_once_and_the_limits_hold(tokens in tokens()) {
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
    fn a_token_given_twice_is_passed_on_twice_so_that_the_kernel_count_shows_it() {
        assert_eq!(expand(&batches(&[7, 7])), [7, 7]);
    }
}
