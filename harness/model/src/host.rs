// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a device reaches.

/// An access to memory that nothing answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;

/// The bus and the wire that a device is on.
pub trait Host {
    /// Reads memory, or another device's.
    ///
    /// # Errors
    ///
    /// [`Fault`] if nothing is there, for the whole access.
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
