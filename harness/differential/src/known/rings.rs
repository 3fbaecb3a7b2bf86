// SPDX-License-Identifier: MIT OR Apache-2.0

//! The differences that are known of rings as no driver may set them up.

use i82576::tx::Data;

use super::{Known, Mask, received, sent};
use crate::{
    Hex,
    receive::{Received, Settings},
    ring::{Chain, Fate, Ring},
    transmit::{Packet, Sent},
};

/// What was done, in either direction.
pub trait Done {
    /// Makes it nothing, with a head that stays where it is.
    fn undo(&mut self, head: u32);

    /// Takes interrupts and their causes out.
    fn silence(&mut self);
}

impl Done for Received {
    fn undo(&mut self, _: u32) {
        self.descriptors.clear();
        self.used.fill(0);
        self.counters.fill(0);
        self.dropped.fill(0);
        self.silence();
    }

    fn silence(&mut self) {
        (self.causes, self.messages) = (0, 0);
    }
}

impl Done for Sent {
    fn undo(&mut self, head: u32) {
        self.frames.clear();
        self.done.fill(false);
        self.counters.fill(0);
        self.head = head;
        self.silence();
    }

    fn silence(&mut self) {
        (self.causes, self.messages) = (0, 0);
    }
}

/// All of them.
pub(super) const KNOWN: &[Known] = &[
    Known {
        what: "a ring's length that is no multiple of 128",
        decides: "QEMU's model takes multiples of 16; the datasheet's \"RDLEN\" and \"TDLEN\" decide",
        mask: Mask::Ring(|ring, ours, theirs| {
            if ring.is_odd() {
                ours.undo(ring.head());
                theirs.undo(ring.head());
            }
        }),
    },
    Known {
        what: "a head that is outside of its ring",
        decides: "QEMU's model takes a descriptor from behind the ring, ours none; the datasheet's \"RDH\" and \"TDH\" decide",
        mask: Mask::Ring(|ring, _, theirs| {
            if ring.begins_outside() {
                theirs.undo(ring.head());
            }
        }),
    },
    Known {
        what: "a tail that is outside of its ring",
        decides: "QEMU's model interrupts, though it writes no descriptor; the datasheet's \"RDT\" decides",
        mask: Mask::Ring(|ring, _, theirs| {
            if ring.ends_outside() {
                theirs.silence();
            }
        }),
    },
    Known {
        what: "a descriptor of reserved type, and a packet that has no end",
        decides: "QEMU's model knows two bits of the type and goes on, ours stops there; the datasheet's \"DTYP\" decides",
        mask: Mask::Chain(|chain, _, theirs| {
            if chain.fate == Fate::Senseless {
                theirs.undo(chain.end());
            }
        }),
    },
    Known {
        what: "a packet that isn't as long as it says",
        decides: "QEMU's model ignores PAYLEN, ours sends nothing; the datasheet's \"PAYLEN\" decides",
        mask: Mask::Chain(|chain, ours, theirs| {
            if chain.fate == Fate::Special {
                for sent in [ours, theirs] {
                    sent.frames.clear();
                    sent.counters.fill(0);
                }
            }
        }),
    },
    Known {
        what: "a descriptor without bytes",
        decides: "QEMU's model sends nothing of its packet; the 82575's manual has such ones transfer no data",
        mask: Mask::Chain(|chain, ours, theirs| {
            if chain.fate == Fate::Hollow && theirs.frames.is_empty() {
                theirs.frames.clone_from(&ours.frames);
                theirs.counters = ours.counters;
            }
        }),
    },
    Known {
        what: "RS before the end of a packet",
        decides: "QEMU's model reports each descriptor at once, contexts too, ours the packet's once it was sent; \
                  the datasheet's \"RS\" wants it with EOP",
        mask: Mask::Chain(|chain, _, theirs| {
            for (done, [_, is_data]) in theirs.done.iter_mut().zip(&chain.reports) {
                *done &= chain.is_whole() && *is_data;
            }
            if !theirs.done.contains(&true) {
                theirs.silence();
            }
        }),
    },
];

/// As [`received`], on a ring that no driver may set up.
pub fn received_on(
    ring: &Ring,
    settings: &Settings,
    frame: &[u8],
    ours: &mut Received,
    theirs: &mut Received,
) {
    of_ring(ring, ours, theirs);
    received(settings, frame, ours, theirs);
}

/// Takes the known differences out of what has become of a chain of descriptors.
pub fn sent_chain(chain: &Chain, ours: &mut Sent, theirs: &mut Sent) {
    for known in KNOWN {
        if let Mask::Chain(mask) = known.mask {
            mask(chain, ours, theirs);
        }
    }
    of_ring(&chain.ring, ours, theirs);
    let plain = Packet {
        bytes: Hex(Vec::new()),
        parts: 1,
        data: Data::default(),
        context: None,
    };
    sent(&plain, ours, theirs);
}

fn of_ring(ring: &Ring, ours: &mut dyn Done, theirs: &mut dyn Done) {
    for known in KNOWN {
        if let Mask::Ring(mask) = known.mask {
            mask(ring, ours, theirs);
        }
    }
}
