// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which zero-copy sends are complete (Documentation/networking/msg_zerocopy.rst).
//!
//! The kernel numbers a socket's successful zero-copy sends from 0, wrapping at 2^32, and reports
//! ranges of numbers.

use std::collections::VecDeque;

use crate::bytes::u32_at;
use crate::cmsg::Message;
use crate::error::{BadControlMessage, SendError};
use crate::way::Way;

/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` (include/uapi/linux/errqueue.h).
const ORIGIN_ZEROCOPY: u8 = 5;
const CODE_COPIED: u8 = 1;

/// A send that is complete: the kernel and the NIC are done with its bytes, which may be written
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// Where the bytes start in the dma-buf.
    pub offset: u64,
    /// How many bytes the kernel accepted.
    pub len: usize,
    /// Whether the kernel copied the bytes instead of letting the NIC read them
    /// (`SO_EE_CODE_ZEROCOPY_COPIED`).
    pub copied: bool,
}

impl Completion {
    /// The way that the bytes took.
    #[must_use]
    pub fn way(&self) -> Way {
        match self.copied {
            true => Way::Copied,
            false => Way::Direct,
        }
    }
}

/// A range of completed sends, as the error queue tells it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) copied: bool,
}

impl Notice {
    /// Decodes `struct sock_extended_err`: u32 errno, u8 origin, type, code, pad, u32 info, data.
    /// None if it is about other things.
    pub(crate) fn decode(message: Message<'_>) -> Result<Option<Self>, SendError> {
        let is_error = matches!(
            (message.level, message.kind),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
        );
        if !is_error || message.data.get(4) != Some(&ORIGIN_ZEROCOPY) {
            return Ok(None);
        }
        match (
            message.data.get(6),
            u32_at(message.data, 8),
            u32_at(message.data, 12),
        ) {
            (Some(code), Some(first), Some(last)) => Ok(Some(Self {
                first,
                last,
                copied: code & CODE_COPIED != 0,
            })),
            _ => {
                let len = message.data.len();
                Err(
                    BadControlMessage::from(format!("a struct sock_extended_err of {len} bytes"))
                        .into(),
                )
            }
        }
    }
}

#[derive(Debug)]
struct Send {
    offset: u64,
    len: usize,
    done: bool,
}

/// The sends of a socket that are not complete.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// The kernel's number for the first of `sends`.
    first: u32,
    /// In order of their numbers. Those in the middle that are done stay until all before them are.
    sends: VecDeque<Send>,
    open: usize,
}

impl InFlight {
    /// How many sends are not complete.
    pub(crate) fn len(&self) -> usize {
        self.open
    }

    /// Notes a send that the kernel accepted.
    pub(crate) fn add(&mut self, offset: u64, len: usize) {
        self.sends.push_back(Send {
            offset,
            len,
            done: false,
        });
        self.open += 1;
    }

    /// Notes that the kernel completed the sends `first..=last`, and passes each to `each`.
    pub(crate) fn complete(
        &mut self,
        first: u32,
        last: u32,
        copied: bool,
        mut each: impl FnMut(Completion),
    ) -> Result<(), SendError> {
        let unexpected = SendError::UnexpectedCompletion { first, last };
        let start = first.wrapping_sub(self.first) as usize;
        let count = last.wrapping_sub(first) as usize + 1;
        let Some(range) = start
            .checked_add(count)
            .filter(|&end| end <= self.sends.len())
            .map(|end| start..end)
        else {
            return Err(unexpected);
        };
        if self.sends.range(range.clone()).any(|send| send.done) {
            return Err(unexpected);
        }
        for send in self.sends.range_mut(range) {
            send.done = true;
            each(Completion {
                offset: send.offset,
                len: send.len,
                copied,
            });
        }
        self.open -= count;
        while self.sends.front().is_some_and(|send| send.done) {
            self.sends.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn starting_at(first: u32) -> InFlight {
        InFlight {
            first,
            ..InFlight::default()
        }
    }

    proptest! {
        #[test]
        fn sends_completed_in_ranges_and_any_order_are_each_reported_once(
            // Near the wrap of the counter, so that most cases cross it.
            first in (u32::MAX - 40)..=u32::MAX,
            lens in proptest::collection::vec(1usize..10, 1..30),
            order in any::<proptest::sample::Index>(),
        ) {
            let mut in_flight = starting_at(first);
            // Ranges of `lens` sends; send n lies at offset n.
            let mut ranges = Vec::new();
            let mut next = 0usize;
            for len in &lens {
                ranges.push((next, next + len - 1));
                next += len;
            }
            for offset in 0..next {
                in_flight.add(offset as u64, 100 + offset);
            }
            let turn = order.index(ranges.len());
            ranges.rotate_left(turn);

            let mut seen = Vec::new();
            for (from, to) in ranges {
                let number = |n: usize| first.wrapping_add(n as u32);
                let before = seen.len();
                in_flight.complete(number(from), number(to), false, |done| seen.push(done)).expect("in flight");
                let offsets: Vec<u64> = seen[before..].iter().map(|done| done.offset).collect();
                prop_assert_eq!(offsets, (from as u64..=to as u64).collect::<Vec<_>>());
                prop_assert_eq!(in_flight.len(), next - seen.len());
                prop_assert!(in_flight.complete(number(from), number(to), false, |_| ()).is_err(), "completed twice");
            }
            prop_assert!(seen.iter().all(|done| done.len == 100 + done.offset as usize));
            prop_assert_eq!(in_flight.first, first.wrapping_add(next as u32));
            prop_assert!(in_flight.sends.is_empty());
        }
    }

    #[test]
    fn a_range_across_the_wrap_of_the_counter_is_one_range() {
        let mut in_flight = starting_at(u32::MAX);
        in_flight.add(0, 1);
        in_flight.add(1, 1);
        let mut seen = Vec::new();
        in_flight
            .complete(u32::MAX, 0, true, |done| {
                seen.push((done.offset, done.copied))
            })
            .expect("both are in flight");
        assert_eq!(seen, [(0, true), (1, true)]);
        assert_eq!(in_flight.len(), 0);
    }

    #[test]
    fn a_completion_of_what_was_never_sent_is_an_error_and_changes_nothing() {
        let mut in_flight = starting_at(10);
        in_flight.add(0, 1);
        for (first, last) in [(10, 11), (9, 10), (11, 11), (10, 9), (0, u32::MAX)] {
            let error = in_flight
                .complete(first, last, false, |_| panic!("nothing may be reported"))
                .expect_err("not in flight");
            assert!(
                matches!(error, SendError::UnexpectedCompletion { .. }),
                "{first}..={last}: got {error:?}"
            );
        }
        assert_eq!(in_flight.len(), 1);
    }

    fn extended_error(origin: u8, code: u8, info: u32, data: u32) -> Vec<u8> {
        let mut bytes = 0u32.to_ne_bytes().to_vec();
        bytes.extend([origin, 0, code, 0]);
        bytes.extend(info.to_ne_bytes());
        bytes.extend(data.to_ne_bytes());
        bytes.extend([0; 16]);
        bytes
    }

    #[test]
    fn the_range_is_from_info_to_data_for_ipv4_and_ipv6() {
        let data = extended_error(5, 0, u32::MAX, 2);
        for (level, kind) in [
            (libc::SOL_IP, libc::IP_RECVERR),
            (libc::SOL_IPV6, libc::IPV6_RECVERR),
        ] {
            let notice = Notice::decode(Message {
                level,
                kind,
                data: &data,
            })
            .expect("well formed");
            assert_eq!(
                notice,
                Some(Notice {
                    first: u32::MAX,
                    last: 2,
                    copied: false
                })
            );
        }
    }

    #[test]
    fn a_copy_by_the_kernel_is_reported() {
        let data = extended_error(5, 1, 0, 0);
        let notice = Notice::decode(Message {
            level: libc::SOL_IP,
            kind: libc::IP_RECVERR,
            data: &data,
        })
        .expect("well formed");
        assert_eq!(
            notice,
            Some(Notice {
                first: 0,
                last: 0,
                copied: true
            })
        );
    }

    #[test]
    fn errors_of_other_origins_and_other_messages_are_not_completions() {
        let icmp = extended_error(2, 0, 0, 0);
        assert_eq!(
            Notice::decode(Message {
                level: libc::SOL_IP,
                kind: libc::IP_RECVERR,
                data: &icmp
            })
            .expect("fine"),
            None
        );
        let other = extended_error(5, 0, 0, 0);
        assert_eq!(
            Notice::decode(Message {
                level: libc::SOL_SOCKET,
                kind: libc::IP_RECVERR,
                data: &other
            })
            .expect("fine"),
            None
        );
    }

    #[test]
    fn a_notice_that_is_cut_is_an_error() {
        let data = &extended_error(5, 0, 0, 0)[..12];
        assert!(
            Notice::decode(Message {
                level: libc::SOL_IP,
                kind: libc::IP_RECVERR,
                data
            })
            .is_err()
        );
    }
}
