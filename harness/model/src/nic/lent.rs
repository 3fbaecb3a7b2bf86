// SPDX-License-Identifier: MIT OR Apache-2.0

//! Memory that is lent to the device: the ring of each queue from when it is enabled until it rests, and
//! buffers from when their descriptors are fetched until they are filled. Whatever the device writes is checked
//! against it, so that nothing is written to memory that the driver never gave, or has back.
//!
//! What is sent is not remembered: a driver may lend the same bytes many times at once.

use std::{collections::BTreeMap, ops::Range};

use super::violation::What;
use crate::{Fault, Host, lies::Misled};

/// Whose memory it is: a queue that transmits or receives, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    Transmit(u16),
    Receive(u16),
}

/// A buffer that is posted.
#[derive(Debug)]
struct Buffer {
    end: u64,
    queue: u16,
}

impl Buffer {
    fn of(&self) -> Of {
        Of::Receive(self.queue)
    }
}

/// What is lent.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    /// What a queue writes to as long as it is enabled.
    rings: BTreeMap<Of, Vec<Range<u64>>>,
    /// Buffers by their addresses. They overlap where a driver knows that frames are shorter, as Linux's
    /// `igb` does.
    buffers: BTreeMap<u64, Buffer>,
    /// What each queue had when it came to rest.
    returned: BTreeMap<Of, Vec<u64>>,
    /// Queues whose memory the driver has back though they go on.
    pub(crate) misled: Misled<Of>,
}

impl Lent {
    /// A queue is enabled, with what it writes to.
    pub(crate) fn enable(&mut self, of: Of, rings: impl IntoIterator<Item = Range<u64>>) {
        self.give_back(of);
        self.rings.insert(of, rings.into_iter().collect());
    }

    /// A queue has come to rest: the driver has all its memory back.
    pub(crate) fn give_back(&mut self, of: Of) {
        self.misled.settle(of);
        let rings = self.rings.remove(&of).unwrap_or_default();
        let mut addresses: Vec<_> = rings.into_iter().map(|ring| ring.start).collect();
        if let Of::Receive(number) = of {
            self.buffers.retain(|address, buffer| {
                let theirs = buffer.queue == number;
                addresses.extend(theirs.then_some(*address));
                !theirs
            });
        }
        self.returned.insert(of, addresses);
    }

    /// Any of the addresses that a queue had when it came to rest, by `value`.
    pub(crate) fn returned(&self, of: Of, value: u64) -> Option<u64> {
        let addresses = self.returned.get(&of)?;
        // CAST: It is less than there are.
        let nth = value.checked_rem(addresses.len() as u64)? as usize;
        addresses.get(nth).copied()
    }

    fn holds(&self, address: u64, len: usize) -> bool {
        let Some(end) = address.checked_add(len as u64) else {
            return false;
        };
        let buffer = self.buffers.range(..=address).next_back();
        let rings = self.rings.iter().filter(|(of, _)| !self.misled.has(**of));
        buffer.is_some_and(|(_, buffer)| end <= buffer.end && !self.misled.has(buffer.of()))
            || (rings.flat_map(|(_, rings)| rings))
                .any(|ring| ring.start <= address && end <= ring.end)
    }
}

/// All memory, of which only what is lent is written.
pub(crate) struct Memory<'a> {
    pub(crate) host: &'a mut dyn Host,
    pub(crate) lent: &'a mut Lent,
}

impl Memory<'_> {
    /// A descriptor with this buffer is fetched by a receive queue.
    ///
    /// # Errors
    ///
    /// [`What::PostedTwice`]: the device has it already. It is posted all the same.
    pub(crate) fn post(&mut self, queue: u16, address: u64, size: usize) -> Result<(), What> {
        let end = address.saturating_add(size as u64);
        match self.lent.buffers.insert(address, Buffer { end, queue }) {
            Some(before) if !self.lent.misled.has(before.of()) => Err(What::PostedTwice),
            _ => Ok(()),
        }
    }

    /// A buffer of a queue's is the driver's again. One that was posted to another queue meanwhile is not.
    pub(crate) fn take_back(&mut self, queue: u16, address: u64) {
        let buffers = &mut self.lent.buffers;
        if buffers
            .get(&address)
            .is_some_and(|buffer| buffer.queue == queue)
        {
            buffers.remove(&address);
        }
    }
}

impl Host for Memory<'_> {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.host.read(address, bytes)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        if !self.lent.holds(address, bytes.len()) {
            return Err(Fault::NotLent);
        }
        self.host.write(address, bytes)
    }

    fn interrupt(&mut self, vector: u16) {
        self.host.interrupt(vector);
    }

    fn send(&mut self, frame: Vec<u8>) {
        self.host.send(frame);
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::nic::tests::Recorder;

    const QUEUE: Of = Of::Receive(1);

    #[test]
    fn only_what_is_lent_is_written_and_nothing_once_its_queue_rests() {
        let (mut host, mut lent) = (Recorder::with_memory(0x4000), Lent::default());
        lent.enable(QUEUE, iter::once(0x1000..0x1400));
        lent.enable(Of::Transmit(1), iter::once(0x1400..0x1800));
        let mut memory = Memory {
            host: &mut host,
            lent: &mut lent,
        };
        memory.post(1, 0x2000, 0x800).unwrap();
        assert_eq!(memory.post(2, 0x2000, 0x800), Err(What::PostedTwice));
        memory.post(1, 0x3000, 0x800).unwrap();
        for (address, len, can) in [
            (0x1000, 0x400, true),
            (0x13f0, 0x20, false),
            (0x1400, 16, true),
            (0x1800, 1, false),
            (0x3000, 0x800, true),
            (0x3000, 0x801, false),
            (0x37ff, 1, true),
            (0x2fff, 2, false),
            (u64::MAX, 2, false),
        ] {
            let written = memory.write(address, &vec![1; len]);
            let expected = if can { Ok(()) } else { Err(Fault::NotLent) };
            assert_eq!(written, expected, "{len:#x} at {address:#x}");
        }
        memory.lent.give_back(QUEUE);
        for (address, can) in [
            (0x1000, false),
            (0x3000, false),
            (0x2000, true),
            (0x1400, true),
        ] {
            assert_eq!(memory.write(address, &[1]).is_ok(), can, "{address:#x}");
        }
        let returned = [0, 1, 2].map(|value| memory.lent.returned(QUEUE, value));
        assert_eq!(returned, [Some(0x1000), Some(0x3000), Some(0x1000)]);
        memory.take_back(1, 0x2000);
        assert_eq!(
            memory.write(0x2000, &[1]),
            Ok(()),
            "it is the other queue's"
        );
        memory.take_back(2, 0x2000);
        assert_eq!(memory.write(0x2000, &[1]), Err(Fault::NotLent));
        assert_eq!(memory.lent.returned(Of::Receive(2), 0), None);
    }
}
