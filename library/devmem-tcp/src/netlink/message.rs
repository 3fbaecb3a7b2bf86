// SPDX-License-Identifier: MIT OR Apache-2.0

//! Netlink messages as bytes (include/uapi/linux/netlink.h): `struct nlmsghdr { u32 len; u16 type;
//! u16 flags; u32 seq; u32 pid; }`, then the payload, padded to 4 bytes.

use netlink_bindings::builtin::NlmsgerrAttrs;

use crate::bytes::{i32_at, u16_at, u32_at};
use crate::error::Refusal;

/// Bytes of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Types below this are control messages of netlink itself.
const NLMSG_MIN_TYPE: u16 = 16;

/// Flag of a message that belongs to a list which changed while the kernel walked it.
const NLM_F_DUMP_INTR: u16 = 0x10;
/// Flag of an answer that does not repeat the request.
const NLM_F_CAPPED: u16 = 0x100;
/// Flag of an answer with an extended acknowledgement.
const NLM_F_ACK_TLVS: u16 = 0x200;

/// A message from the kernel, by what it means for a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer<'a> {
    /// One reply; there may be more.
    Reply {
        /// What follows the netlink header.
        payload: &'a [u8],
        /// The list changed since the reply before.
        changed: bool,
    },
    /// All went well, and all replies were sent.
    Finished {
        /// The list changed since the last reply.
        changed: bool,
    },
    /// The request failed.
    Refused(Refusal),
}

/// A request: header and payload, which is `struct genlmsghdr` and attributes.
pub(crate) fn request(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + payload.len());
    // A request is a few attributes, far from 4 GiB; the kernel refuses one whose length is wrong.
    message.extend(
        u32::try_from(HEADER + payload.len())
            .unwrap_or(u32::MAX)
            .to_ne_bytes(),
    );
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(payload);
    message
}

/// The answers to the request `sequence` in a datagram. A message that is cut ends them.
pub(crate) fn answers(datagram: &[u8], sequence: u32) -> impl Iterator<Item = Answer<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        loop {
            let len = u32_at(rest, 0)? as usize;
            let message = rest.get(..len).filter(|message| message.len() >= HEADER)?;
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
            if u32_at(message, 8) != Some(sequence) {
                // A late answer to a request that was given up.
                continue;
            }
            match (u16_at(message, 4)?, u16_at(message, 6)?) {
                (NLMSG_ERROR | NLMSG_DONE, flags) => return outcome(message, flags),
                (kind, flags) if kind >= NLMSG_MIN_TYPE => {
                    let changed = flags & NLM_F_DUMP_INTR != 0;
                    return Some(Answer::Reply {
                        payload: &message[HEADER..],
                        changed,
                    });
                }
                _ => {}
            }
        }
    })
}

/// What `NLMSG_ERROR` (which acknowledges too) or `NLMSG_DONE` says.
fn outcome(message: &[u8], flags: u16) -> Option<Answer<'_>> {
    let code = i32_at(message, HEADER)?;
    if code == 0 {
        return Some(Answer::Finished {
            changed: flags & NLM_F_DUMP_INTR != 0,
        });
    }
    let mut refusal = Refusal::from_errno(code.checked_neg()?);
    if flags & NLM_F_ACK_TLVS != 0 {
        // struct nlmsgerr has the request's header after the code, and the whole request unless
        // capped; NLMSG_DONE has the code only.
        let repeated = match u16_at(message, 4)? {
            NLMSG_DONE => 0,
            _ if flags & NLM_F_CAPPED != 0 => HEADER,
            _ => (u32_at(message, HEADER + 4)? as usize).checked_next_multiple_of(4)?,
        };
        let start = repeated.checked_add(HEADER + 4)?;
        let attributes = NlmsgerrAttrs::new(message.get(start..)?);
        refusal.extack = attributes
            .get_msg()
            .ok()
            .map(|text| text.to_string_lossy().into_owned());
        refusal.bad_attribute = attributes.get_offset().ok().map(|offset| offset as usize);
    }
    Some(Answer::Refused(refusal))
}

#[cfg(test)]
mod tests {
    use netlink_bindings::utils::{align, push_header};
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut message = request(kind, flags, sequence, payload);
        align(&mut message);
        message
    }

    fn extended_acknowledgement() -> Vec<u8> {
        let mut attributes = Vec::new();
        push_header(&mut attributes, 1, 9);
        attributes.extend(b"it is so\0");
        push_header(&mut attributes, 2, 4);
        attributes.extend(44u32.to_ne_bytes());
        attributes
    }

    fn refusal(errno: i32) -> Answer<'static> {
        let extack = Some("it is so".to_owned());
        Answer::Refused(Refusal {
            errno,
            extack,
            bad_attribute: Some(44),
        })
    }

    #[test]
    fn replies_come_in_order_and_other_sequences_are_skipped() {
        let datagram = [
            message(30, 0, 7, b"first"),
            message(30, 0, 6, b"of another request"),
            message(1, 0, 7, b""),
            message(30, 0, 7, b"second"),
            message(NLMSG_ERROR, NLM_F_CAPPED, 7, &0i32.to_ne_bytes()),
        ]
        .concat();
        let expected = [
            Answer::Reply {
                payload: b"first",
                changed: false,
            },
            Answer::Reply {
                payload: b"second",
                changed: false,
            },
            Answer::Finished { changed: false },
        ];
        assert_eq!(answers(&datagram, 7).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_refusal_keeps_errno_words_and_pointer_whether_the_request_is_repeated_or_not() {
        let original = request(30, 5, 7, b"abcdef");
        for (flags, repeated) in [(NLM_F_CAPPED, HEADER), (0, original.len())] {
            let mut payload = (-22i32).to_ne_bytes().to_vec();
            payload.extend(&original[..repeated]);
            align(&mut payload);
            payload.extend(extended_acknowledgement());
            let datagram = message(NLMSG_ERROR, flags | NLM_F_ACK_TLVS, 7, &payload);
            assert_eq!(answers(&datagram, 7).collect::<Vec<_>>(), [refusal(22)]);
        }
    }

    #[test]
    fn a_list_that_fails_at_its_end_is_a_refusal() {
        let mut payload = (-95i32).to_ne_bytes().to_vec();
        payload.extend(extended_acknowledgement());
        let datagram = message(NLMSG_DONE, 2 | NLM_F_ACK_TLVS, 7, &payload);
        assert_eq!(answers(&datagram, 7).collect::<Vec<_>>(), [refusal(95)]);
        let datagram = message(NLMSG_DONE, 2, 7, &(-19i32).to_ne_bytes());
        let expected = [Answer::Refused(Refusal::from_errno(19))];
        assert_eq!(answers(&datagram, 7).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_list_that_changed_meanwhile_is_marked_where_the_kernel_marks_it() {
        let datagram = [
            message(30, 2 | NLM_F_DUMP_INTR, 7, b"item"),
            message(NLMSG_DONE, 2 | NLM_F_DUMP_INTR, 7, &0i32.to_ne_bytes()),
        ]
        .concat();
        let expected = [
            Answer::Reply {
                payload: b"item",
                changed: true,
            },
            Answer::Finished { changed: true },
        ];
        assert_eq!(answers(&datagram, 7).collect::<Vec<_>>(), expected);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_nor_loop(
            mut datagram in proptest::collection::vec(any::<u8>(), 0..200),
            kind in 0u16..20,
        ) {
            // A plausible start, so that more than the first length is looked at.
            if let Some(start) = datagram.get_mut(..HEADER) {
                start[..4].copy_from_slice(&40u32.to_ne_bytes());
                start[4..6].copy_from_slice(&kind.to_ne_bytes());
                start[8..12].copy_from_slice(&7u32.to_ne_bytes());
            }
            prop_assert!(answers(&datagram, 7).count() <= datagram.len() / HEADER);
        }
    }
}
