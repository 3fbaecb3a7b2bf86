// SPDX-License-Identifier: MIT OR Apache-2.0

//! What `recvmsg(MSG_SOCK_DEVMEM)` received, decoded from its control messages.

use crate::bytes::{u32_at, u64_at};
use crate::cmsg;
use crate::error::BadControlMessage;
use crate::fragment::{Fragment, RawFragment};
use crate::way::{ByWay, Way};

/// Bytes of `struct dmabuf_cmsg` (include/uapi/linux/uio.h): u64 frag_offset, u32 frag_size,
/// frag_token, dmabuf_id, flags.
pub(crate) const DMABUF_CMSG: usize = 24;

/// A piece of the stream, in the order in which it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a, F> {
    /// It lies in device memory.
    Device(F),
    /// It was copied to host memory.
    Linear(&'a [u8]),
}

/// What one call received.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Received {
    /// The pieces in device memory, in stream order. Take them out (`drain(..)`) to recycle them.
    pub fragments: Vec<Fragment>,
    /// The bytes that did not land in device memory, in stream order. On a well configured path
    /// there are none.
    pub linear: Vec<u8>,
    /// How many of `linear` came in ordinary packets, which is all or none of them: the flow
    /// reached a queue that is not bound. The others are what the NIC could not split from the
    /// header.
    pub unsteered: usize,
    /// The peer will send nothing more.
    pub end_of_stream: bool,
    /// Lengths of the linear pieces, each with the number of fragments before it.
    linear_pieces: Vec<(usize, usize)>,
}

impl Received {
    /// Bytes received, in device memory and elsewhere.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.fragments
            .iter()
            .map(|fragment| u64::from(fragment.len()))
            .sum::<u64>()
            + self.linear.len() as u64
    }

    /// Bytes received, by the way that they took.
    #[must_use]
    pub fn by_way(&self) -> ByWay {
        let mut counts = ByWay::default();
        let linear = self.linear.len() as u64;
        let unsteered = self.unsteered as u64;
        counts.add(Way::Direct, self.bytes() - linear);
        counts.add(Way::Linear, linear - unsteered);
        counts.add(Way::Unsteered, unsteered);
        counts
    }

    /// All pieces in stream order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_, &Fragment>> {
        in_order(self.fragments.iter(), &self.linear_pieces, &self.linear)
    }

    /// All pieces in stream order; the fragments are taken out.
    pub fn drain_pieces(&mut self) -> impl Iterator<Item = Piece<'_, Fragment>> {
        in_order(self.fragments.drain(..), &self.linear_pieces, &self.linear)
    }

    fn clear(&mut self) {
        self.fragments.clear();
        self.linear.clear();
        self.linear_pieces.clear();
        self.unsteered = 0;
        self.end_of_stream = false;
    }

    fn push_linear(&mut self, bytes: &[u8]) {
        self.linear_pieces.push((self.fragments.len(), bytes.len()));
        self.linear.extend_from_slice(bytes);
    }

    /// Takes in what a `recvmsg` on the socket of a cookie, that returned `bytes`, left in the control buffer and
    /// in the data buffer.
    pub(crate) fn fill(
        &mut self,
        socket: u64,
        bytes: usize,
        control: &[u8],
        data: &[u8],
    ) -> Result<(), BadControlMessage> {
        self.clear();
        let mut rest = data;
        let mut described = 0;
        for message in cmsg::messages(control) {
            if message.level != libc::SOL_SOCKET {
                continue;
            }
            match message.kind {
                libc::SCM_DEVMEM_DMABUF => {
                    let fragment = Fragment::from_raw(fragment(socket, message.data)?);
                    described += fragment.len() as usize;
                    self.fragments.push(fragment);
                }
                libc::SCM_DEVMEM_LINEAR => {
                    let len = fragment(socket, message.data)?.len as usize;
                    let (piece, after) = rest.split_at_checked(len).ok_or_else(|| {
                        bad(format!(
                            "a linear piece of {len} bytes is larger than the buffer"
                        ))
                    })?;
                    self.push_linear(piece);
                    described += len;
                    rest = after;
                }
                _ => {}
            }
        }
        if described == 0 {
            // No message describes ordinary packets, and the kernel never mixes them with the
            // others in one call.
            let piece = data
                .get(..bytes)
                .ok_or_else(|| bad(format!("{bytes} bytes are larger than the buffer")))?;
            if !piece.is_empty() {
                self.push_linear(piece);
            }
            self.unsteered = bytes;
            self.end_of_stream = bytes == 0;
        } else if described != bytes {
            return Err(bad(format!(
                "{bytes} bytes were received, but messages describe {described}"
            )));
        }
        Ok(())
    }
}

/// Puts linear pieces, of which the number of fragments before each and its length are given, between
/// fragments.
fn in_order<'a, F>(
    fragments: impl Iterator<Item = F>,
    linear_pieces: &'a [(usize, usize)],
    mut linear: &'a [u8],
) -> impl Iterator<Item = Piece<'a, F>> {
    let mut fragments = fragments.enumerate().peekable();
    let mut lengths = linear_pieces.iter().peekable();
    std::iter::from_fn(move || match lengths.peek() {
        Some(&&(before, len)) if fragments.peek().is_none_or(|&(index, _)| index >= before) => {
            lengths.next();
            let (piece, rest) = linear.split_at_checked(len)?;
            linear = rest;
            Some(Piece::Linear(piece))
        }
        _ => fragments
            .next()
            .map(|(_, fragment)| Piece::Device(fragment)),
    })
}

fn fragment(socket: u64, data: &[u8]) -> Result<RawFragment, BadControlMessage> {
    match (
        u64_at(data, 0),
        u32_at(data, 8),
        u32_at(data, 12),
        u32_at(data, 16),
    ) {
        (Some(offset), Some(len), Some(token), Some(dmabuf_id)) => Ok(RawFragment {
            offset,
            len,
            token,
            dmabuf_id,
            socket,
        }),
        _ => Err(bad(format!("a struct dmabuf_cmsg of {} bytes", data.len()))),
    }
}

fn bad(what: String) -> BadControlMessage {
    what.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cmsg::Message;

    /// A socket's cookie.
    const SOCKET: u64 = 7;

    /// A piece as the kernel describes it.
    #[derive(Debug, Clone)]
    enum Sent {
        Device {
            offset: u64,
            len: u32,
            token: u32,
            dmabuf_id: u32,
        },
        Linear(Vec<u8>),
    }

    fn sent() -> impl Strategy<Value = Sent> {
        prop_oneof![
            (any::<u64>(), 1u32..=65536, any::<u32>(), any::<u32>()).prop_map(
                |(offset, len, token, dmabuf_id)| Sent::Device {
                    offset,
                    len,
                    token,
                    dmabuf_id
                }
            ),
            proptest::collection::vec(any::<u8>(), 1..50).prop_map(Sent::Linear),
        ]
    }

    fn describe(control: &mut Vec<u8>, kind: i32, offset: u64, words: [u32; 4]) {
        let mut data = offset.to_ne_bytes().to_vec();
        data.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        cmsg::push(
            control,
            Message {
                level: libc::SOL_SOCKET,
                kind,
                data: &data,
            },
        );
    }

    /// What the kernel leaves behind for these pieces: return value, control buffer, data buffer.
    fn as_the_kernel_does(pieces: &[Sent]) -> (usize, Vec<u8>, Vec<u8>) {
        let (mut bytes, mut control, mut data) = (0, Vec::new(), Vec::new());
        for piece in pieces {
            match piece {
                Sent::Device {
                    offset,
                    len,
                    token,
                    dmabuf_id,
                } => {
                    describe(
                        &mut control,
                        libc::SCM_DEVMEM_DMABUF,
                        *offset,
                        [*len, *token, *dmabuf_id, 0],
                    );
                    bytes += *len as usize;
                }
                Sent::Linear(piece) => {
                    describe(
                        &mut control,
                        libc::SCM_DEVMEM_LINEAR,
                        0,
                        [piece.len() as u32, 0, 0, 0],
                    );
                    data.extend(piece);
                    bytes += piece.len();
                }
            }
        }
        data.resize(data.len() + 100, 0xee);
        (bytes, control, data)
    }

    proptest! {
        #[test]
        fn any_mix_of_fragments_and_linear_bytes_comes_back_in_order(
            first in proptest::collection::vec(sent(), 1..30),
            second in proptest::collection::vec(sent(), 1..30),
        ) {
            let mut received = Received::default();
            // Twice into the same memory: nothing of the first may show in the second.
            for pieces in [first, second] {
                let (bytes, control, data) = as_the_kernel_does(&pieces);
                received.fill(SOCKET, bytes, &control, &data).expect("well formed");
                prop_assert_eq!(received.bytes(), bytes as u64);
                prop_assert_eq!(received.unsteered, 0);
                let lens = pieces.iter().map(|piece| match piece {
                    Sent::Device { len, .. } => (u64::from(*len), 0),
                    Sent::Linear(piece) => (0, piece.len() as u64),
                });
                let (direct, linear) = lens.fold((0, 0), |all, len| (all.0 + len.0, all.1 + len.1));
                let ways = received.by_way();
                prop_assert_eq!((ways.get(Way::Direct), ways.get(Way::Linear)), (direct, linear));
                prop_assert_eq!(ways.total(), bytes as u64);
                prop_assert!(!received.end_of_stream);
                prop_assert_eq!(received.pieces().count(), pieces.len());
                let mut back = received.drain_pieces();
                for piece in &pieces {
                    match (piece, back.next()) {
                        (Sent::Device { offset, len, token, dmabuf_id }, Some(Piece::Device(fragment))) => prop_assert_eq!(
                            fragment.into_raw(),
                            RawFragment { offset: *offset, len: *len, token: *token, dmabuf_id: *dmabuf_id, socket: SOCKET }
                        ),
                        (Sent::Linear(bytes), Some(Piece::Linear(piece))) => prop_assert_eq!(piece, bytes.as_slice()),
                        (expected, got) => prop_assert!(false, "expected {:?}, got {:?}", expected, got),
                    }
                }
                prop_assert_eq!(back.next(), None);
            }
        }
    }

    #[test]
    fn bytes_without_messages_are_reported_as_unsteered() {
        let mut received = Received::default();
        received
            .fill(SOCKET, 5, &[], b"hello, not yours")
            .expect("ordinary data");
        assert_eq!(
            (received.linear.as_slice(), received.unsteered),
            (b"hello".as_slice(), 5)
        );
        assert_eq!(
            received.pieces().collect::<Vec<_>>(),
            [Piece::Linear(b"hello")]
        );
        let ways = received.by_way();
        assert_eq!((ways.get(Way::Unsteered), ways.total()), (5, 5));
    }

    #[test]
    fn nothing_at_all_is_the_end_of_the_stream() {
        let mut received = Received::default();
        received
            .fill(SOCKET, 0, &[], b"old bytes")
            .expect("end of stream");
        assert!(received.end_of_stream);
        assert_eq!(received.pieces().count(), 0);
    }

    #[test]
    fn messages_that_describe_other_than_what_was_received_are_an_error() {
        let (bytes, control, data) = as_the_kernel_does(&[Sent::Device {
            offset: 0,
            len: 9,
            token: 1,
            dmabuf_id: 1,
        }]);
        let error = Received::default()
            .fill(SOCKET, bytes + 1, &control, &data)
            .expect_err("one byte is not described");
        assert!(
            error.what.contains("10 bytes were received"),
            "got {error:?}"
        );
    }

    #[test]
    fn other_control_messages_are_ignored() {
        let (bytes, mut control, data) = as_the_kernel_does(&[Sent::Linear(vec![1, 2])]);
        cmsg::push(
            &mut control,
            Message {
                level: libc::SOL_SOCKET,
                kind: libc::SCM_TIMESTAMP,
                data: &[0; 16],
            },
        );
        cmsg::push(
            &mut control,
            Message {
                level: libc::SOL_IP,
                kind: libc::SCM_DEVMEM_LINEAR,
                data: &[9; 24],
            },
        );
        let mut received = Received::default();
        received
            .fill(SOCKET, bytes, &control, &data)
            .expect("well formed");
        assert_eq!(received.linear, [1, 2]);
    }
}
