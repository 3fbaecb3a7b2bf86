// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The contexts that a TX queue keeps: a context descriptor need not be sent again while the device
//! has what it says.

use crate::tx::{
    Context,
    Raw, //
};

/// How many contexts the device keeps for a queue.
const CONTEXTS: usize = 2;

/// What a queue that was just enabled has: no context descriptor is encoded like this.
const UNSET: Raw = [0; 2];

/// What the contexts of one queue are after all descriptors that were written to its ring.
///
/// They are lost when the queue is disabled, and when descriptors are taken back that the device
/// has not fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contexts([Raw; CONTEXTS]);

impl Contexts {
    /// None is known.
    #[inline]
    pub const fn new() -> Self {
        Self([UNSET; CONTEXTS])
    }

    /// Makes the context that `context` names what it says: the descriptor that does it, or `None` if it
    /// is so already.
    #[inline]
    pub fn set(&mut self, context: &Context) -> Option<Raw> {
        let raw = context.encode();
        let known = &mut self.0[usize::from(context.queue_index) % CONTEXTS];

        if *known == raw {
            return None;
        }
        *known = raw;
        Some(raw)
    }
}

impl Default for Contexts {
    fn default() -> Self {
        Self::new()
    }
}
