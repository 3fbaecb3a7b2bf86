// SPDX-License-Identifier: MIT OR Apache-2.0

//! Control messages (cmsg(3)) as bytes: `struct cmsghdr { size_t len; int level; int type; }`,
//! data, padding to a `size_t`.

use std::mem::size_of;

use crate::bytes::{i32_at, usize_at};

/// Bytes of `struct cmsghdr`, which is a multiple of a `size_t` on every architecture.
pub(crate) const HEADER: usize = size_of::<libc::cmsghdr>();

/// Bytes that a message with `data` bytes takes in a control buffer (`CMSG_SPACE`).
pub(crate) const fn space(data: usize) -> usize {
    HEADER + data.next_multiple_of(size_of::<usize>())
}

/// One control message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) level: i32,
    pub(crate) kind: i32,
    pub(crate) data: &'a [u8],
}

/// The messages in a control buffer that the kernel filled. It ends at the first that is cut.
pub(crate) fn messages(control: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = control;
    std::iter::from_fn(move || {
        let len = usize_at(rest, 0)?;
        let level = i32_at(rest, size_of::<usize>())?;
        let kind = i32_at(rest, size_of::<usize>() + 4)?;
        let data = rest.get(HEADER..len)?;
        rest = rest
            .get(len.next_multiple_of(size_of::<usize>())..)
            .unwrap_or_default();
        Some(Message { level, kind, data })
    })
}

/// Appends a message to a control buffer.
pub(crate) fn push(control: &mut Vec<u8>, message: Message<'_>) {
    let start = control.len();
    control.extend((HEADER + message.data.len()).to_ne_bytes());
    control.extend(message.level.to_ne_bytes());
    control.extend(message.kind.to_ne_bytes());
    control.extend(message.data);
    control.resize(start + space(message.data.len()), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_of_any_size_come_back_in_order(
            sent in proptest::collection::vec((any::<i32>(), any::<i32>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..20),
        ) {
            let mut control = Vec::new();
            for (level, kind, data) in &sent {
                push(&mut control, Message { level: *level, kind: *kind, data });
            }
            let expected: usize = sent.iter().map(|(_, _, data)| space(data.len())).sum();
            prop_assert_eq!(control.len(), expected);
            let back: Vec<_> = messages(&control).map(|message| (message.level, message.kind, message.data.to_vec())).collect();
            prop_assert_eq!(back, sent);
        }

        #[test]
        fn arbitrary_bytes_never_panic_nor_loop(control in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&control).count() <= control.len() / HEADER);
        }
    }

    #[test]
    fn the_header_is_laid_out_as_the_c_library_has_it() {
        assert_eq!(HEADER, std::mem::offset_of!(libc::cmsghdr, cmsg_type) + 4);
        assert_eq!(
            std::mem::offset_of!(libc::cmsghdr, cmsg_level),
            size_of::<usize>()
        );
        // SAFETY: CMSG_SPACE only computes.
        assert_eq!(space(5), unsafe { libc::CMSG_SPACE(5) } as usize);
    }
}
