// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a device reaches.

/// Why memory was not accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing answers there.
    Unanswered,
    /// The device is no bus master: it may ask for nothing.
    NoMaster,
    /// The device itself refuses: the memory is not its to write to.
    NotLent,
}

/// The bus and the wire that a device is on.
pub trait Host {
    /// Reads memory, or another device's.
    ///
    /// # Errors
    ///
    /// [`Fault`], for the whole access.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Fault>;

    /// Writes memory, or another device's.
    ///
    /// # Errors
    ///
    /// As for [`Self::read`].
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault>;

    /// Sends an MSI-X message, by its vector.
    fn interrupt(&mut self, vector: u16);

    /// Puts a frame on the wire, without the frame check sequence.
    fn send(&mut self, frame: Vec<u8>);
}
